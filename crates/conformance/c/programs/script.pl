use strict; use warnings;
my %h; my @a;
for my $i (1 .. 150000) { $h{"key" . $i % 5000} .= chr(65 + $i % 26); push @a, $i * 3 % 1009; }
my $text = join ",", map { "$_=" . length $h{$_} } sort keys %h;
print length($text), " ", unpack("%32C*", $text), "\n";
my @s = sort { $a <=> $b } @a; print "@s[0 .. 5] $#s\n";
my $n = () = $text =~ /key(\d+)5=/g; print "$n\n";
for my $i (1 .. 6) { my $pid = fork; if (!$pid) { my @x = (1) x 100000; exit $i; } waitpid $pid, 0; print $? >> 8, " "; }
print "\n", `echo from a shell`;
my $big = "x" x 30_000_000; substr($big, 10_000_000, 5) = "hello"; print index($big, "hello"), "\n";
local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; select undef, undef, undef, 30; }; print $@;
