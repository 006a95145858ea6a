--- Settings of an application: defaults in its code, above them `config.toml` beside it,
--- above that the environment.
--- Not for: settings of the host, which are its options.
---
--- The defaults say which settings there are and of which type each is. A setting that the
--- file has and the defaults lack is an error, with its line; so is one of another type.

local native = require("prony.native")
local text_of = require("prony.text")

local config = {}

local Required = {}

--- A setting without default: `required("string")`.
function config.required(kind)
  return setmetatable({ kind = kind }, Required)
end

local function kind_of(default)
  return getmetatable(default) == Required and default.kind or type(default)
end

local function is_section(default)
  return kind_of(default) == "table" and getmetatable(default) ~= Required and default[1] == nil and next(default) ~= nil
end

local function sorted_keys(values)
  local keys = {}
  for key in pairs(values) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

--- The known names that `name` could have been meant as.
local function known(defaults)
  return "known are " .. table.concat(sorted_keys(defaults), ", ")
end

local function merge(defaults, values, path, place)
  local merged = {}
  for _, key in ipairs(sorted_keys(values)) do
    if defaults[key] == nil then
      error(place(path .. key) .. "there is no setting `" .. path .. key .. "`; " .. known(defaults), 0)
    end
  end
  for key, default in pairs(defaults) do
    local value = values[key]
    if is_section(default) then
      if value ~= nil and type(value) ~= "table" then
        error(place(path .. key) .. "`" .. path .. key .. "` is a section: write [" .. path .. key .. "]", 0)
      end
      merged[key] = merge(default, value or {}, path .. key .. ".", place)
    elseif value ~= nil then
      local kind = kind_of(default)
      if type(value) ~= kind then
        error(place(path .. key) .. "`" .. path .. key .. "` has to be a " .. kind .. ", not a " .. type(value), 0)
      end
      merged[key] = value
    else
      merged[key] = default
    end
  end
  return merged
end

local readers = {
  string = function(text)
    return text
  end,
  number = tonumber,
  boolean = function(text)
    return ({ ["true"] = true, ["1"] = true, ["false"] = false, ["0"] = false })[text:lower()]
  end,
  table = function(text)
    local list = {}
    for item in text:gmatch("[^,]+") do
      list[#list + 1] = text_of.trim(item)
    end
    return list
  end,
}

local function from_environment(merged, defaults, prefix, getenv)
  for _, key in ipairs(sorted_keys(defaults)) do
    local default, name = defaults[key], prefix .. key:upper():gsub("%W", "_")
    if is_section(default) then
      from_environment(merged[key], default, name .. "_", getenv)
    else
      local text = getenv(name)
      if text then
        local kind = kind_of(default)
        local value = readers[kind](text)
        if value == nil then
          error("environment: " .. name .. "=" .. text .. " has to be a " .. kind, 0)
        end
        merged[key] = value
      end
    end
  end
end

local function check_required(merged, path, file, prefix)
  for _, key in ipairs(sorted_keys(merged)) do
    local value = merged[key]
    if getmetatable(value) == Required then
      local name = prefix .. (path .. key):upper():gsub("%W", "_")
      error(file .. ": the setting `" .. path .. key .. "` is missing; write it there, or set " .. name, 0)
    elseif type(value) == "table" and value[1] == nil then
      check_required(value, path .. key .. ".", file, prefix)
    end
  end
end

--- `host.lua` is for the host, unless the application has such a setting, too.
local function set_aside(values, defaults)
  local host, own = values.host, defaults.host
  if type(host) ~= "table" or (type(own) == "table" and own.lua ~= nil) then
    return
  end
  host.lua = nil
  if own == nil and next(host) == nil then
    values.host = nil
  end
end

--- Reads the settings. A file that is not there is none; all else that is wrong is an
--- error. `options`: prefix of environment variables ("PRONY_APP_"), getenv.
function config.load(file, defaults, options)
  options = options or {}
  local prefix = options.prefix or "PRONY_APP_"
  local values, lines = {}, {}
  local handle = io.open(file, "r")
  if handle then
    local text = handle:read("*a")
    handle:close()
    values, lines = native.toml(text, file)
    set_aside(values, defaults)
  end
  local function place(path)
    return file .. ":" .. (lines[path] or 1) .. ": "
  end
  local merged = merge(defaults, values, "", place)
  from_environment(merged, defaults, prefix, options.getenv or os.getenv)
  check_required(merged, "", file, prefix)
  return merged
end

return config
