function __stepctl_should_offer_completions_for_flags_or_options -a expected_commands
    set -l non_repeating_flags_or_options $argv[2..]
    set -l non_repeating_flags_or_options_absent 0
    set -l positional_index 0
    set -l commands
    __stepctl_parse_tokens
    test "$commands" = "$expected_commands"; and return $non_repeating_flags_or_options_absent
end

function __stepctl_should_offer_completions_for_positional -a expected_commands positional_index_comparison expected_positional_index
    set -l non_repeating_flags_or_options
    set -l non_repeating_flags_or_options_absent 0
    set -l positional_index 0
    set -l commands
    __stepctl_parse_tokens
    test "$commands" = "$expected_commands" -a \( "$positional_index" "$positional_index_comparison" "$expected_positional_index" \)
end

function __stepctl_parse_tokens -S
    set -l unparsed_tokens (__stepctl_tokens -pc)
    switch $unparsed_tokens[1]
    case 'stepctl'
        __stepctl_parse_subcommand 0 'version' 'h/help'
        switch $unparsed_tokens[1]
        case 'open'
            __stepctl_parse_subcommand 0 'side=' 'by=' 'vehicle=' 'radio=' 'timeout=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'close'
            __stepctl_parse_subcommand 0 'side=' 'by=' 'vehicle=' 'radio=' 'timeout=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'status'
            __stepctl_parse_subcommand 0 'watch' 'vehicle=' 'timeout=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'locate'
            __stepctl_parse_subcommand 0 'by=' 'watch' 'interval=' 'vehicle=' 'radio=' 'save=' 'timeout=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'scan'
            __stepctl_parse_subcommand 0 'radio=' 'save=' 'timeout=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'calibrate'
            __stepctl_parse_subcommand 0 'step=' 'seconds=' 'captures=' 'y/yes' 'dry-run' 'vehicle=' 'radio=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'provision'
            __stepctl_parse_subcommand 0 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'vehicle'
                __stepctl_parse_subcommand 1 'name=' 'uuid=' 'topic=' 'host=' 'port=' 'servo=' 'force' 'relocate' 'renew' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
            case 'token'
                __stepctl_parse_subcommand 1 'rider=' 'steps=' 'for=' 'device-key=' 'force' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
            end
        case 'config'
            __stepctl_parse_subcommand 0 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'show'
                __stepctl_parse_subcommand 0 'vehicle=' 'radio=' 'timeout=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
            case 'path'
                __stepctl_parse_subcommand 0 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
            end
        case 'help'
            __stepctl_parse_subcommand -r 1 'version'
        end
    end
end

function __stepctl_tokens
    if test (string split -m 1 -f 1 -- . "$FISH_VERSION") -gt 3
        commandline --tokens-raw $argv
    else
        commandline -o $argv
    end
end

function __stepctl_parse_subcommand -S -a positional_count
    argparse -s r -- $argv
    set -l option_specs $argv[2..]
    set -l is_repeating_positional $_flag_r
    set -el _flag_r
    set -a commands $unparsed_tokens[1]
    set positional_index 0
    while true
        set -e unparsed_tokens[1]
        argparse -sn "$commands" $option_specs -- $unparsed_tokens 2> /dev/null
        set unparsed_tokens $argv
        set positional_index (math $positional_index + 1)
        for non_repeating_flag_or_option in $non_repeating_flags_or_options
            if set -ql "_flag_$(string replace -a - _ -- $non_repeating_flag_or_option)"
                set non_repeating_flags_or_options_absent 1
                break
            end
        end
        test (count $unparsed_tokens) -eq 0 -o \( -z "$is_repeating_positional" -a "$positional_index" -gt "$positional_count" \) && break
    end
end

function __stepctl_complete_directories
    set -l token (commandline -t)
    string match -- '*/' $token
    set -l subdirs $token*/
    printf %s\n $subdirs
end

function __stepctl_custom_completion
    set -x SAP_SHELL fish
    set -x SAP_SHELL_VERSION $FISH_VERSION
    set -l tokens (__stepctl_tokens -p)
    if test -z "$(__stepctl_tokens -t)"
        set -l index (count (__stepctl_tokens -pc))
        set tokens $tokens[..$index] \'\' $tokens[(math $index + 1)..]
    end
    command $tokens[1] $argv $tokens
end

complete -c 'stepctl' -f
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'open' -d 'Open the step that you are standing in front of.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'close' -d 'Close the step that you are standing in front of.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'status' -d 'Ask a vehicle how its steps stand.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'locate' -d 'Say which step you are standing in front of.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'scan' -d 'Print every iBeacon frame that is heard, one a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'calibrate' -d 'Measure how strongly a vehicle\'s beacons are received, and note it in the vehicle file.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'provision' -d 'Make what vehicles and riders need.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'config' -d 'Show what stepctl is configured to do, and by which file.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'help' -d 'Show subcommand help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" side' -l 'side' -d 'Which step: left, right, or the one that you are facing.' -rfka 'left right facing'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" by' -l 'by' -d 'How to find out where you are.' -rfka 'auto beacon'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" radio' -l 'radio' -d 'What to listen with: hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" side' -l 'side' -d 'Which step: left, right, or the one that you are facing.' -rfka 'left right facing'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" by' -l 'by' -d 'How to find out where you are.' -rfka 'auto beacon'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" radio' -l 'radio' -d 'What to listen with: hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" watch' -l 'watch' -d 'Keep going, and print every change.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" by' -l 'by' -d 'How to find out where you are.' -rfka 'auto beacon'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" watch' -l 'watch' -d 'Keep going, and print every decision.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" interval' -l 'interval' -d 'Time between two decisions with --watch.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" radio' -l 'radio' -d 'What to listen with: hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" save' -l 'save' -d 'Save what is heard as a btsnoop capture, into a new file.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'btsnoop\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" radio' -l 'radio' -d 'What to listen with: hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" save' -l 'save' -d 'Save what is heard as a btsnoop capture, into a new file.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'btsnoop\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" timeout' -l 'timeout' -d 'End after this time on the radio\'s clock (default: never).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" step' -l 'step' -d 'The only step to calibrate (default: all).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" seconds' -l 'seconds' -d 'How long to listen at each position.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" captures' -l 'captures' -d 'Take the positions from captures in this folder.' -rfa '(__stepctl_complete_directories)'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" y yes' -l 'yes' -s 'y' -d 'Write the vehicle file without asking, unless that would make it worse.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" dry-run' -l 'dry-run' -d 'Do not write the vehicle file.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" radio' -l 'radio' -d 'What to listen with: hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl provision" -eq 1' -fa 'vehicle' -d 'Make a vehicle\'s keys, certificates and configuration.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl provision" -eq 1' -fa 'token' -d 'Give a rider what it takes to move a vehicle\'s steps, for a time.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl provision vehicle" -eq 1' -fa '(__stepctl_complete_directories)'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" name' -l 'name' -d 'What people call the vehicle (default: the folder\'s name).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" uuid' -l 'uuid' -d 'The vehicle\'s UUID, which its beacons send (default: a random one).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" topic' -l 'topic' -d 'The prefix of its MQTT topics (default: vehicles/UUID).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" host' -l 'host' -d 'The broker\'s host name or address, as riders reach it.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" port' -l 'port' -d 'The broker\'s port.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" servo' -l 'servo' -d 'What moves the steps: simulated (writes motions to servo.jsonl) or pwm.' -rfka 'simulated pwm'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" force' -l 'force' -d 'Replace the vehicle that is there. Its riders need new tokens then.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" relocate' -l 'relocate' -d 'Only write mosquitto.conf anew, after the folder has been moved.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" renew' -l 'renew' -d 'Only renew the certificates of broker and controller.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl provision token" -eq 1' -fa '(__stepctl_complete_directories)'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" rider' -l 'rider' -d 'The rider: letters, digits, \'.\', \'-\' and \'_\'. The files are put into riders/NAME.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" steps' -l 'steps' -d 'The steps, joined by commas (default: all).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" for' -l 'for' -d 'How long the token is valid, as 45s, 30m, 8h or 7d.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" device-key' -l 'device-key' -d 'The rider\'s own public device key, as a JWK (default: a new one).' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'jwk\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" force' -l 'force' -d 'Replace the token of a rider who has one.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl config" -eq 1' -fa 'show' -d 'Print every setting, its value and where that comes from.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl config" -eq 1' -fa 'path' -d 'Print the files that are looked at, in order of precedence.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" radio' -l 'radio' -d 'What to listen with: hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config path" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config path" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config path" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config path" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config path" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config path" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl help" version' -l 'version' -d 'Show the version.'
