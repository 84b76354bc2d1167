
# Services and methods: of the server, or of the files, that the line names.
function __fish_thalweg_names
    set -l line (commandline -opc)
    $line[1] complete --shell fish -- $line (commandline -ct) 2>/dev/null
end
complete -c thalweg -n "__fish_thalweg_using_subcommand call" -f -a "(__fish_thalweg_names)"
complete -c thalweg -n "__fish_thalweg_using_subcommand load" -l call -r -f -a "(__fish_thalweg_names)"
