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
            __stepctl_parse_subcommand 1 'side=' 'watch' 'call-radio=' 'by=' 'radio=' 'nfc=' 'qr=' 'timeout=' 'vehicle=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'close'
            __stepctl_parse_subcommand 1 'side=' 'watch' 'call-radio=' 'by=' 'radio=' 'nfc=' 'qr=' 'timeout=' 'vehicle=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'stop'
            __stepctl_parse_subcommand 0 'side=' 'vehicle=' 'timeout=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'status'
            __stepctl_parse_subcommand 0 'watch' 'vehicle=' 'timeout=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'locate'
            __stepctl_parse_subcommand 0 'watch' 'interval=' 'by=' 'radio=' 'nfc=' 'qr=' 'timeout=' 'vehicle=' 'save=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'scan'
            __stepctl_parse_subcommand 0 'radio=' 'save=' 'timeout=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'doctor'
            __stepctl_parse_subcommand 0 'radio=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'calibrate'
            __stepctl_parse_subcommand 0 'step=' 'seconds=' 'captures=' 'y/yes' 'dry-run' 'vehicle=' 'radio=' 'no-input' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
        case 'provision'
            __stepctl_parse_subcommand 0 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'vehicle'
                __stepctl_parse_subcommand 1 'name=' 'uuid=' 'topic=' 'host=' 'port=' 'servo=' 'beacon=+' 'force' 'relocate' 'renew' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
            case 'token'
                __stepctl_parse_subcommand 1 'rider=' 'steps=' 'for=' 'device-key=' 'force' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
            case 'beacon'
                __stepctl_parse_subcommand 0 'step=' 'minor=' 'measured-power=' 'save' 'vehicle=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
            case 'tag'
                __stepctl_parse_subcommand 0 'step=' 'sdm' 'lock' 'replace-all' 'register' 'dry-run' 'batch' 'count=' 'y/yes' 'vehicle=' 'nfc=' 'timeout=' 'no-input' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
            case 'qr'
                __stepctl_parse_subcommand 0 'step=' 'sheet' 'format=' 'o/output=' 'level=' 'size=' 'paper=' 'copies=' 'vehicle=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
            end
        case 'config'
            __stepctl_parse_subcommand 0 'version' 'h/help'
            switch $unparsed_tokens[1]
            case 'show'
                __stepctl_parse_subcommand 0 'vehicle=' 'radio=' 'nfc=' 'timeout=' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
            case 'path'
                __stepctl_parse_subcommand 0 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
            case 'import'
                __stepctl_parse_subcommand 1 'qr=' 'name=' 'y/yes' 'timeout=' 'no-input' 'json' 'q/quiet' 'v/verbose' 'no-color' 'version' 'h/help'
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
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'stop' -d 'Stop a step that moves, wherever you are.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'status' -d 'Ask a vehicle how its steps stand.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'locate' -d 'Say which step you are standing in front of.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'scan' -d 'Show every iBeacon that is heard: a table on a terminal, else each frame in a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'doctor' -d 'Check whether the radios work, and say what to type if they do not.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'calibrate' -d 'Measure how strongly a vehicle\'s beacons are received, and note it in the vehicle file.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'provision' -d 'Make keys, tokens, tags and codes for vehicles and riders.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'config' -d 'Show stepctl\'s settings and where each comes from, and add vehicles.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl" -eq 1' -fa 'help' -d 'Show subcommand help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl open" -eq 1' -fka 'left right facing'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" side' -l 'side' -d 'The same as an option.' -rfka 'left right facing'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" watch' -l 'watch' -d 'Draw a picture while you walk up to it.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" call-radio' -l 'call-radio' -d 'What to call a vehicle with that listens for you: hciN, bluez:hciN, h4:tcp:… or h4:unix:… (default: the radio).' -rfka 'hci0 bluez:hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" by' -l 'by' -d 'How to find out where you are.' -rfka 'auto beacon nfc qr'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" radio' -l 'radio' -d 'What to listen with: hciN, bluez:hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 bluez:hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" nfc' -l 'nfc' -d 'The NFC reader, as libnfc names it: pn532_uart:/dev/ttyUSB0 (default: libnfc\'s own).' -rfka 'pn532_uart:/dev/ttyUSB0 pn532_i2c:/dev/i2c-1 pn532_spi:/dev/spidev0.0 pn53x_usb'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" qr' -l 'qr' -d 'A picture of a code (PNG, JPEG), - for standard input, or a camera: /dev/video0.' -rfa '(set -l exts \'png\' \'jpg\' \'jpeg\';for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.{$exts};printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl open" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl close" -eq 1' -fka 'left right facing'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" side' -l 'side' -d 'The same as an option.' -rfka 'left right facing'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" watch' -l 'watch' -d 'Draw a picture while you walk up to it.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" call-radio' -l 'call-radio' -d 'What to call a vehicle with that listens for you: hciN, bluez:hciN, h4:tcp:… or h4:unix:… (default: the radio).' -rfka 'hci0 bluez:hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" by' -l 'by' -d 'How to find out where you are.' -rfka 'auto beacon nfc qr'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" radio' -l 'radio' -d 'What to listen with: hciN, bluez:hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 bluez:hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" nfc' -l 'nfc' -d 'The NFC reader, as libnfc names it: pn532_uart:/dev/ttyUSB0 (default: libnfc\'s own).' -rfka 'pn532_uart:/dev/ttyUSB0 pn532_i2c:/dev/i2c-1 pn532_spi:/dev/spidev0.0 pn53x_usb'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" qr' -l 'qr' -d 'A picture of a code (PNG, JPEG), - for standard input, or a camera: /dev/video0.' -rfa '(set -l exts \'png\' \'jpg\' \'jpeg\';for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.{$exts};printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl close" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl stop" side' -l 'side' -d 'Which step: left or right. Without it, every step that your token is for.' -rfka 'left right'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl stop" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl stop" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl stop" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl stop" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl stop" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl stop" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl stop" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl stop" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" watch' -l 'watch' -d 'Keep going, and print every change.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl status" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" watch' -l 'watch' -d 'Keep going: draw a picture, or print each decision where that cannot be.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" interval' -l 'interval' -d 'Time between two decisions with --watch.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" by' -l 'by' -d 'How to find out where you are.' -rfka 'auto beacon nfc qr'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" radio' -l 'radio' -d 'What to listen with: hciN, bluez:hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 bluez:hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" nfc' -l 'nfc' -d 'The NFC reader, as libnfc names it: pn532_uart:/dev/ttyUSB0 (default: libnfc\'s own).' -rfka 'pn532_uart:/dev/ttyUSB0 pn532_i2c:/dev/i2c-1 pn532_spi:/dev/spidev0.0 pn53x_usb'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" qr' -l 'qr' -d 'A picture of a code (PNG, JPEG), - for standard input, or a camera: /dev/video0.' -rfa '(set -l exts \'png\' \'jpg\' \'jpeg\';for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.{$exts};printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" save' -l 'save' -d 'Save what is heard as a btsnoop capture, into a new file.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'btsnoop\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl locate" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" radio' -l 'radio' -d 'What to listen with: hciN, bluez:hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 bluez:hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" save' -l 'save' -d 'Save what is heard as a btsnoop capture, into a new file.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'btsnoop\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" timeout' -l 'timeout' -d 'End after this time on the radio\'s clock (default: never).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl scan" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl doctor" radio' -l 'radio' -d 'The only radio to check (default: all of this machine).' -rfka 'hci0 bluez:hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl doctor" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl doctor" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl doctor" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl doctor" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl doctor" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl doctor" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" step' -l 'step' -d 'The only step to calibrate (default: all).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" seconds' -l 'seconds' -d 'How long to listen at each position (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" captures' -l 'captures' -d 'Take the positions from captures in this folder.' -rfa '(__stepctl_complete_directories)'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" y yes' -l 'yes' -s 'y' -d 'Write the vehicle file without asking, unless that would make it worse.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" dry-run' -l 'dry-run' -d 'Do not write the vehicle file.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" radio' -l 'radio' -d 'What to listen with: hciN, bluez:hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 bluez:hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" no-input' -l 'no-input' -d 'Never ask; end where an answer is needed.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl calibrate" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl provision" -eq 1' -fa 'vehicle' -d 'Make a vehicle\'s keys, certificates and configuration.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl provision" -eq 1' -fa 'token' -d 'Allow a rider to move a vehicle\'s steps for some time.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl provision" -eq 1' -fa 'beacon' -d 'Show what to program into a beacon, and note what it sends.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl provision" -eq 1' -fa 'tag' -d 'Write a step\'s name to an NFC tag for that step.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl provision" -eq 1' -fa 'qr' -d 'Make the QR code of a step, of all steps, or of the vehicle itself.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl provision vehicle" -eq 1' -fa '(__stepctl_complete_directories)'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" name' -l 'name' -d 'What people call the vehicle (default: the folder\'s name).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" uuid' -l 'uuid' -d 'The vehicle\'s UUID, which its beacons send (default: a random one).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" topic' -l 'topic' -d 'The prefix of its MQTT topics (default: vehicles/UUID).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" host' -l 'host' -d 'The broker\'s host name or address, as riders reach it.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" port' -l 'port' -d 'The broker\'s port.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" servo' -l 'servo' -d 'What moves the steps: simulated (writes motions to servo.jsonl), pwm or pca9685.' -rfka 'simulated pwm pca9685'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle"' -l 'beacon' -d 'The radios that send the steps\' beacons, with rotating minors: left=hci0, or hci0 for all (default: other devices).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" force' -l 'force' -d 'Replace the vehicle that is there. Its riders then need new tokens.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" relocate' -l 'relocate' -d 'Only rewrite mosquitto.conf, after the folder was moved.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" renew' -l 'renew' -d 'Only renew the certificates of broker and controller.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision vehicle" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl provision token" -eq 1' -fa '(__stepctl_complete_directories)'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision token" rider' -l 'rider' -d 'The rider: letters, digits, dots, hyphens and underscores. The files go into riders/NAME.' -rfka ''
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
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision beacon" step' -l 'step' -d 'The step that the beacon is for.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision beacon" minor' -l 'minor' -d 'The minor that it sends (default: the vehicle file\'s, else 1).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision beacon" measured-power' -l 'measured-power' -d 'The RSSI at 1 m that it sends (default: the vehicle file\'s, else -59).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision beacon" save' -l 'save' -d 'Note the minor, and the measured power if given, in the vehicle file.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision beacon" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision beacon" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision beacon" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision beacon" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision beacon" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision beacon" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision beacon" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" step' -l 'step' -d 'The step that the tag will be on.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" sdm' -l 'sdm' -d 'Set up an NTAG 424 DNA, which cannot be copied, instead of a plain tag.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" lock' -l 'lock' -d 'Make the tag read-only for ever. Asks first.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" replace-all' -l 'replace-all' -d 'Erase whatever else the tag holds.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" register' -l 'register' -d 'List the tag as one of the step\'s in the vehicle file.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" dry-run' -l 'dry-run' -d 'Say what would be written, but write nothing.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" batch' -l 'batch' -d 'Write one tag after the other, and print a table of them.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" count' -l 'count' -d 'End after so many tags with --batch (default: at Control-C).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" y yes' -l 'yes' -s 'y' -d 'Do not ask.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" nfc' -l 'nfc' -d 'The NFC reader, as libnfc names it: pn532_uart:/dev/ttyUSB0 (default: libnfc\'s own).' -rfka 'pn532_uart:/dev/ttyUSB0 pn532_i2c:/dev/i2c-1 pn532_spi:/dev/spidev0.0 pn53x_usb'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" no-input' -l 'no-input' -d 'Never ask; end where an answer is needed.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision tag" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" step' -l 'step' -d 'The step whose code to make (default: the code of the vehicle itself).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" sheet' -l 'sheet' -d 'Make a PDF with the codes of all steps, a page each or, with --size, to cut out.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" format' -l 'format' -d 'How to draw it (default: by the ending of the output\'s name, else terminal).' -rfka 'terminal png svg pdf'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" o output' -s 'o' -l 'output' -d 'Write into this file, or - (default: standard output).' -rfa '(set -l exts \'png\' \'svg\' \'pdf\';for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.{$exts};printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" level' -l 'level' -d 'How much of a code may be damaged (default: M; L for the vehicle\'s).' -rfka 'L M Q H'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" size' -l 'size' -d 'The side of a printed code, without its margin (default: 40; in a PDF, as large as fits on a page).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" paper' -l 'paper' -d 'The paper of a PDF.' -rfka 'a4 letter'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" copies' -l 'copies' -d 'How many of each code a PDF has.' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl provision qr" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl config" -eq 1' -fa 'show' -d 'Print each setting, its value and where it comes from.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl config" -eq 1' -fa 'path' -d 'Print the files that stepctl reads, the most important first.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl config" -eq 1' -fa 'import' -d 'Add a vehicle from its QR code or your operator\'s file.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" vehicle' -l 'vehicle' -d 'The vehicle: a file, or the name of a known one.' -rfa '(for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.\'toml\';printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" radio' -l 'radio' -d 'What to listen with: hciN, bluez:hciN, h4:tcp:HOST:PORT, h4:unix:PATH, or btsnoop:FILE (default: hci0).' -rfka 'hci0 bluez:hci0 h4:tcp: h4:unix: btsnoop:'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config show" nfc' -l 'nfc' -d 'The NFC reader, as libnfc names it: pn532_uart:/dev/ttyUSB0 (default: libnfc\'s own).' -rfka 'pn532_uart:/dev/ttyUSB0 pn532_i2c:/dev/i2c-1 pn532_spi:/dev/spidev0.0 pn53x_usb'
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
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_positional "stepctl config import" -eq 1' -F
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config import" qr' -l 'qr' -d 'A picture of a code (PNG, JPEG), - for standard input, or a camera: /dev/video0.' -rfa '(set -l exts \'png\' \'jpg\' \'jpeg\';for p in (string match -e -- \'*/\' (commandline -t);or printf \n)*.{$exts};printf %s\n $p;end;__fish_complete_directories (commandline -t) \'\')'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config import" name' -l 'name' -d 'What to call the vehicle (default: its own name, in letters that are easy to type).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config import" y yes' -l 'yes' -s 'y' -d 'Trust it without asking.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config import" timeout' -l 'timeout' -d 'How long to listen and to wait (default: 10).' -rfka ''
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config import" no-input' -l 'no-input' -d 'Never ask; end where an answer is needed.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config import" json' -l 'json' -d 'Print JSON, one object a line.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config import" q quiet' -l 'quiet' -s 'q' -d 'Print results and errors only.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config import" v verbose' -l 'verbose' -s 'v' -d 'Say more about what is going on.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config import" no-color' -l 'no-color' -d 'Print without colors. So does NO_COLOR in the environment.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config import" version' -l 'version' -d 'Show the version.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl config import" h help' -s 'h' -l 'help' -d 'Show help information.'
complete -c 'stepctl' -n '__stepctl_should_offer_completions_for_flags_or_options "stepctl help" version' -l 'version' -d 'Show the version.'
