--- JSON: `encode(value, pretty)`, `decode(text)` (nil and the reason when it is none),
--- `null`, and `array(list)` for a list that may be empty.

return require("prony.native").json
