# Prints what the script $1 offers for each line of standard input: the line, a colon, the words in order.
source "$1"
while IFS= read -r line; do
    read -ra COMP_WORDS <<<"$line"
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _truecast truecast "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    # What `complete -o default` does where the function offers nothing.
    [[ ${COMPREPLY[*]} ]] || mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    echo "$line: $(printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort -u | xargs)"
done
