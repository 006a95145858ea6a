--- Text as strangers send it. Patterns such as `(.-)%s*$` take time that grows with the
--- square of a text's length; what is here looks at each letter a few times at most.

local text = {}

--- Without the white space around it.
function text.trim(value)
  local first = value:find("%S")
  return first and value:match("^.*%S", first) or ""
end

return text
