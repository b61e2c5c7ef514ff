# Counts how often each word occurs.
{ for (i = 1; i <= NF; i++) count[$i]++ }
END { for (word in count) { n++; s += count[word] } print n, s }
