-- Tables and strings that come and go, beside some that stay.
local kept, sum = {}, 0
for turn = 1, 12 do
  local points = {}
  for number = 1, 60000 do
    points[number] = { x = number, y = number * turn, name = "point " .. number }
  end
  local names = {}
  for number, point in ipairs(points) do
    names[number] = point.name .. "/" .. point.y % 97
  end
  table.sort(names)
  for number = 1, #names, 97 do kept[#kept + 1] = names[number] end
  sum = sum + #table.concat(names, ",")
end
print(#kept, sum)
