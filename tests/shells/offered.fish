# Prints what the script $argv[1] offers for each line of standard input: the line, a colon, the words in order.
source $argv[1]
while read line
    echo "$line: "(complete -C "$line" | cut -f1 | LC_ALL=C sort -u | string join ' ')
end
