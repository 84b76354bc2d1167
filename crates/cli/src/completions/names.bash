
# Services and methods: of the server, or of the files, that the line names.
_thalweg_and_names() {
    local names=""
    case "${COMP_WORDS[1]-}" in
        call|load) names=$("$1" complete --shell bash -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null) ;;
    esac
    if [[ -n "$names" ]]; then
        local IFS=$'\n'
        COMPREPLY=($names)
        # Behind a service its method is yet to come.
        [[ "${COMPREPLY[0]}" == */ ]] && compopt -o nospace 2>/dev/null
        return 0
    fi
    _thalweg "$@"
}
complete -F _thalweg_and_names -o bashdefault -o default thalweg
