# Objects, strings and hashes that come and go, beside some that stay.
Point = Struct.new(:x, :y, :name)
kept = {}
sum = 0
12.times do |turn|
  points = Array.new(60_000) { |number| Point.new(number, number * turn, "point #{number}") }
  names = points.map { |point| "#{point.name}/#{point.y % 97}" }
  names.group_by { |name| name[-2..] }.each { |ending, found| kept[[turn, ending]] = found.first(20) }
  sum += points.sum(&:y) + names.join(",").length
end
puts kept.size, sum
