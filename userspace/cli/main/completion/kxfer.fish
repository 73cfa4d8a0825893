# SPDX-License-Identifier: MIT
#
# Completion of kxfer for fish. The tool knows the words: `kxfer __complete WORD...` (see
# completion.hpp).

function __kxfer_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end

complete -c kxfer -f -a '(__kxfer_complete)'
