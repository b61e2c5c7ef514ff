# A hash of arrays is built, looked up at random, and its keys are sorted at the end.
use strict;
use warnings;
srand(1);
my $count = 250_000;
my (%table, $total);
$table{"k$_"} = [$_, $_ * 2] for 0 .. $count - 1;
for my $turn (1 .. 5) {
    $total += $table{ "k" . int(rand($count)) }->[1] for 1 .. $count;
}
my @keys = sort keys %table;
print $total + @keys, "\n";
