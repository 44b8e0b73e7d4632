# Prints what the script $1 offers for each line of standard input: the line, a colon, the words in order. The lines are
# typed, each with a tab, into an interactive zsh whose `compadd` writes down what it is given.
emulate -R zsh
zmodload zsh/zpty
out=$(mktemp) done=$(mktemp)
trap 'rm -f $out $done' EXIT
zpty z zsh -f -i
send() { zpty -w z "$1" }
send "PS1= PS2= RPS1=; unset zle_bracketed_paste; autoload -Uz compinit && compinit -u -D && source $1"
send "compadd() { if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd \"\$@\"; return; fi
  local -a hits; builtin compadd -A hits \"\$@\"; builtin compadd \"\$@\"; local code=\$?
  print -rl -- \$hits >> $out; return \$code }"
send "offered() { _main_complete; compstate[insert]= compstate[list]=; print 1 > $done }"
send "zle -C offered complete-word offered; bindkey '^I' offered; bindkey '^U' kill-whole-line; print 1 > $done"
answered() {
    local i
    for i in {1..400}; do [[ -s $done ]] && return; sleep 0.05; done
    print -u2 "zsh does not answer"
    exit 1
}
answered
while IFS= read -r line; do
    : > $out; : > $done
    zpty -w -n z "$line"$'\t'
    answered
    zpty -w -n z $'\x15'
    print -r -- "$line: $(LC_ALL=C sort -u $out | xargs)"
done
zpty -d z
