# Services and methods: of the server, or of the files, that the line names.
_thalweg_names() {
    local -a names
    names=("${(@f)$(_call_program names ${(q)thalweg_line[1]} complete --shell zsh -- ${(qq)${(@Q)thalweg_line}} 2>/dev/null)}")
    names=(${names:#})
    local -a services=(${(M)names:#*/}) others=(${names:#*/})
    if (( ! $#names )); then
        _default
        return
    fi
    compadd -S '' -- $services
    compadd -- $others
}

