#!/bin/bash

__stepctl_cursor_index_in_current_word() {
    local remaining="${COMP_LINE}"

    local word
    for word in "${COMP_WORDS[@]::COMP_CWORD}"; do
        remaining="${remaining##*([[:space:]])"${word}"*([[:space:]])}"
    done

    local -ir index="$((COMP_POINT - ${#COMP_LINE} + ${#remaining}))"
    if [[ "${index}" -le 0 ]]; then
        printf 0
    else
        printf %s "${index}"
    fi
}

# positional arguments:
#
# - 1: the current (sub)command's count of positional arguments
#
# required variables:
#
# - repeating_flags: the repeating flags that the current (sub)command can accept
# - non_repeating_flags: the non-repeating flags that the current (sub)command can accept
# - repeating_options: the repeating options that the current (sub)command can accept
# - non_repeating_options: the non-repeating options that the current (sub)command can accept
# - positional_number: value ignored
# - unparsed_words: unparsed words from the current command line
#
# modified variables:
#
# - non_repeating_flags: remove flags for this (sub)command that are already on the command line
# - non_repeating_options: remove options for this (sub)command that are already on the command line
# - positional_number: set to the current positional number
# - unparsed_words: remove all flags, options, and option values for this (sub)command
__stepctl_offer_flags_options() {
    local -ir positional_count="${1}"
    positional_number=0

    local was_flag_option_terminator_seen=false
    local is_parsing_option_value=false

    local -ar unparsed_word_indices=("${!unparsed_words[@]}")
    local -i word_index
    for word_index in "${unparsed_word_indices[@]}"; do
        if "${is_parsing_option_value}"; then
            # This word is an option value:
            # Reset marker for next word iff not currently the last word
            [[ "${word_index}" -ne "${unparsed_word_indices[${#unparsed_word_indices[@]} - 1]}" ]] && is_parsing_option_value=false
            unset "unparsed_words[${word_index}]"
            # Do not process this word as a flag or an option
            continue
        fi

        local word="${unparsed_words["${word_index}"]}"
        if ! "${was_flag_option_terminator_seen}"; then
            case "${word}" in
            --)
                unset "unparsed_words[${word_index}]"
                # by itself -- is a flag/option terminator, but if it is the last word, it is the start of a completion
                if [[ "${word_index}" -ne "${unparsed_word_indices[${#unparsed_word_indices[@]} - 1]}" ]]; then
                    was_flag_option_terminator_seen=true
                fi
                continue
                ;;
            -*)
                # ${word} is a flag or an option
                # If ${word} is an option, mark that the next word to be parsed is an option value
                local option
                for option in "${repeating_options[@]}" "${non_repeating_options[@]}"; do
                    [[ "${word}" = "${option}" ]] && is_parsing_option_value=true && break
                done

                # Remove ${word} from ${non_repeating_flags} or ${non_repeating_options} so it isn't offered again
                local not_found=true
                local -i index
                for index in "${!non_repeating_flags[@]}"; do
                    if [[ "${non_repeating_flags[${index}]}" = "${word}" ]]; then
                        unset "non_repeating_flags[${index}]"
                        non_repeating_flags=("${non_repeating_flags[@]}")
                        not_found=false
                        break
                    fi
                done
                if "${not_found}"; then
                    for index in "${!non_repeating_flags[@]}"; do
                        if [[ "${non_repeating_flags[${index}]}" = "${word}" ]]; then
                            unset "non_repeating_flags[${index}]"
                            non_repeating_flags=("${non_repeating_flags[@]}")
                            break
                        fi
                    done
                fi
                unset "unparsed_words[${word_index}]"
                continue
                ;;
            esac
        fi

        # ${word} is neither a flag, nor an option, nor an option value
        if [[ "${positional_number}" -lt "${positional_count}" || "${positional_count}" -lt 0 ]]; then
            # ${word} is a positional
            ((positional_number++))
            unset "unparsed_words[${word_index}]"
        else
            if [[ -z "${word}" ]]; then
                # Could be completing a flag, option, or subcommand
                positional_number=-1
            else
                # ${word} is a subcommand or invalid, so stop processing this (sub)command
                positional_number=-2
            fi
            break
        fi
    done

    unparsed_words=("${unparsed_words[@]}")

    if\
        ! "${was_flag_option_terminator_seen}"\
        && ! "${is_parsing_option_value}"\
        && [[ ("${cur}" = -* && "${positional_number}" -ge 0) || "${positional_number}" -eq -1 ]]
    then
        COMPREPLY+=($(compgen -W "${repeating_flags[*]} ${non_repeating_flags[*]} ${repeating_options[*]} ${non_repeating_options[*]}" -- "${cur}"))
    fi
}

__stepctl_add_completions() {
    local completion
    while IFS='' read -r completion; do
        COMPREPLY+=("${completion}")
    done < <(IFS=$'\n' compgen "${@}" -- "${cur}")
}

__stepctl_custom_complete() {
    if [[ -n "${cur}" || -z ${COMP_WORDS[${COMP_CWORD}]} || "${COMP_LINE:${COMP_POINT}:1}" != ' ' ]]; then
        local -ar words=("${COMP_WORDS[@]}")
    else
        local -ar words=("${COMP_WORDS[@]::${COMP_CWORD}}" '' "${COMP_WORDS[@]:${COMP_CWORD}}")
    fi

    "${COMP_WORDS[0]}" "${@}" "${words[@]}"
}

_stepctl() {
    local state
    state="$(shopt -p;shopt -po)"
    trap "${state//$'\n'/;}" RETURN
    shopt -s extglob
    set +o history +o posix

    local -xr SAP_SHELL=bash
    local -x SAP_SHELL_VERSION
    SAP_SHELL_VERSION="$(IFS='.';printf %s "${BASH_VERSINFO[*]}")"
    local -r SAP_SHELL_VERSION

    local -r cur="${2}"
    local -r prev="${3}"

    local -i positional_number
    local -a unparsed_words=("${COMP_WORDS[@]:1:${COMP_CWORD}}")

    local -a repeating_flags=()
    local -a non_repeating_flags=(--version -h --help)
    local -a repeating_options=()
    local -a non_repeating_options=()
    __stepctl_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    open|close|stop|status|find|locate|enroll|unlock|lock|config|doctor|login|book|bookings|vehicles|zones|whoami|logout|account|scan|calibrate|evaluate|provision|operator|traffic|help)
        # Offer subcommand argument completions
        "_stepctl_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'open close stop status find locate enroll unlock lock config doctor login book bookings vehicles zones whoami logout account scan calibrate evaluate provision operator traffic help' -- "${cur}"))
        ;;
    esac
}

_stepctl_open() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--watch --json --quiet -q --no-color --version -h --help)
    repeating_options=(--import)
    non_repeating_options=(--wait --side --via --speed --by --radio --nfc --qr --timeout --vehicle)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--wait')
        return
        ;;
    '--import')
        __stepctl_add_completions -f
        return
        ;;
    '--side')
        __stepctl_add_completions -W 'left'$'\n''right'$'\n''facing'
        return
        ;;
    '--via')
        __stepctl_add_completions -W 'auto'$'\n''network'$'\n''bluetooth'
        return
        ;;
    '--speed')
        return
        ;;
    '--by')
        __stepctl_add_completions -W 'auto'$'\n''beacon'$'\n''nfc'$'\n''qr'
        return
        ;;
    '--radio')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion open -- --radio "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--nfc')
        __stepctl_add_completions -W 'pn532_uart:/dev/ttyUSB0'$'\n''pn532_i2c:/dev/i2c-1'$'\n''pn532_spi:/dev/spidev0.0'$'\n''pn53x_usb'
        return
        ;;
    '--qr')
        __stepctl_add_completions -o plusdirs -fX '!*.@(png|jpg|jpeg)'
        return
        ;;
    '--timeout')
        return
        ;;
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion open -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W 'left'$'\n''right'$'\n''facing'
        return
        ;;
    esac
}

_stepctl_close() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--watch --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--side --via --speed --by --radio --nfc --qr --timeout --vehicle)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--side')
        __stepctl_add_completions -W 'left'$'\n''right'$'\n''facing'
        return
        ;;
    '--via')
        __stepctl_add_completions -W 'auto'$'\n''network'$'\n''bluetooth'
        return
        ;;
    '--speed')
        return
        ;;
    '--by')
        __stepctl_add_completions -W 'auto'$'\n''beacon'$'\n''nfc'$'\n''qr'
        return
        ;;
    '--radio')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion close -- --radio "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--nfc')
        __stepctl_add_completions -W 'pn532_uart:/dev/ttyUSB0'$'\n''pn532_i2c:/dev/i2c-1'$'\n''pn532_spi:/dev/spidev0.0'$'\n''pn53x_usb'
        return
        ;;
    '--qr')
        __stepctl_add_completions -o plusdirs -fX '!*.@(png|jpg|jpeg)'
        return
        ;;
    '--timeout')
        return
        ;;
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion close -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W 'left'$'\n''right'$'\n''facing'
        return
        ;;
    esac
}

_stepctl_stop() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--side --via --vehicle --timeout)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--side')
        __stepctl_add_completions -W 'left'$'\n''right'
        return
        ;;
    '--via')
        __stepctl_add_completions -W 'auto'$'\n''network'$'\n''bluetooth'
        return
        ;;
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion stop -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--timeout')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W 'left'$'\n''right'
        return
        ;;
    esac
}

_stepctl_status() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--watch --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--via --vehicle --timeout)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--via')
        __stepctl_add_completions -W 'auto'$'\n''network'$'\n''bluetooth'
        return
        ;;
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion status -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--timeout')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion status -- positional@0 "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_stepctl_find() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--watch --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--to --gpsd --timeout --vehicle)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--to')
        return
        ;;
    '--gpsd')
        return
        ;;
    '--timeout')
        return
        ;;
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion find -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion find -- positional@0 "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_stepctl_locate() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--watch --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--interval --speed --by --radio --nfc --qr --timeout --vehicle --save)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--interval')
        return
        ;;
    '--speed')
        return
        ;;
    '--by')
        __stepctl_add_completions -W 'auto'$'\n''beacon'$'\n''nfc'$'\n''qr'
        return
        ;;
    '--radio')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion locate -- --radio "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--nfc')
        __stepctl_add_completions -W 'pn532_uart:/dev/ttyUSB0'$'\n''pn532_i2c:/dev/i2c-1'$'\n''pn532_spi:/dev/spidev0.0'$'\n''pn53x_usb'
        return
        ;;
    '--qr')
        __stepctl_add_completions -o plusdirs -fX '!*.@(png|jpg|jpeg)'
        return
        ;;
    '--timeout')
        return
        ;;
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion locate -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--save')
        __stepctl_add_completions -o plusdirs -fX '!*.@(btsnoop)'
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion locate -- positional@0 "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_stepctl_enroll() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--passphrase --no-passphrase --drawn --no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--name --passphrase-file -o --output)
    __stepctl_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--name')
        return
        ;;
    '--passphrase-file')
        __stepctl_add_completions -f
        return
        ;;
    '-o'|'--output')
        __stepctl_add_completions -f
        return
        ;;
    esac
}

_stepctl_unlock() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--for)
    __stepctl_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--for')
        return
        ;;
    esac
}

_stepctl_lock() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0
}

_stepctl_config() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    show|path|list|import|forget)
        # Offer subcommand argument completions
        "_stepctl_config_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'show path list import forget' -- "${cur}"))
        ;;
    esac
}

_stepctl_config_show() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--vehicle --radio --nfc --timeout)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion config show -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--radio')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion config show -- --radio "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--nfc')
        __stepctl_add_completions -W 'pn532_uart:/dev/ttyUSB0'$'\n''pn532_i2c:/dev/i2c-1'$'\n''pn532_spi:/dev/spidev0.0'$'\n''pn53x_usb'
        return
        ;;
    '--timeout')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion config show -- positional@0 "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_stepctl_config_path() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0
}

_stepctl_config_list() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0
}

_stepctl_config_import() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--yes -y --no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=(--qr)
    non_repeating_options=(--name --timeout)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--qr')
        __stepctl_add_completions -o plusdirs -fX '!*.@(png|jpg|jpeg)'
        return
        ;;
    '--name')
        return
        ;;
    '--timeout')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -f
        return
        ;;
    esac
}

_stepctl_config_forget() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--yes -y --no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 1

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion config forget -- positional@0 "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_stepctl_doctor() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--vehicle --radio --nfc --timeout)
    __stepctl_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion doctor -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--radio')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion doctor -- --radio "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--nfc')
        __stepctl_add_completions -W 'pn532_uart:/dev/ttyUSB0'$'\n''pn532_i2c:/dev/i2c-1'$'\n''pn532_spi:/dev/spidev0.0'$'\n''pn53x_usb'
        return
        ;;
    '--timeout')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __stepctl_add_completions -W 'vehicle'$'\n''broker'$'\n''controller'$'\n''link'$'\n''radio'$'\n''reader'$'\n''camera'
        return
        ;;
    esac
}

_stepctl_login() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--yes -y --no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--email --ca)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--email')
        return
        ;;
    '--ca')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    esac
}

_stepctl_book() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--yes -y --no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--from --for --steps)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--from')
        return
        ;;
    '--for')
        return
        ;;
    '--steps')
        return
        ;;
    esac
}

_stepctl_bookings() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    list|show|extend|cancel|end)
        # Offer subcommand argument completions
        "_stepctl_bookings_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'list show extend cancel end' -- "${cur}"))
        ;;
    esac
}

_stepctl_bookings_list() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--all --watch --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0
}

_stepctl_bookings_show() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 1
}

_stepctl_bookings_extend() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--for --to)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--for')
        return
        ;;
    '--to')
        return
        ;;
    esac
}

_stepctl_bookings_cancel() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--yes -y --no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 1
}

_stepctl_bookings_end() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--yes -y --no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 1
}

_stepctl_vehicles() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--watch --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--from --to --zone)
    __stepctl_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--from')
        return
        ;;
    '--to')
        return
        ;;
    '--zone')
        return
        ;;
    esac
}

_stepctl_zones() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0
}

_stepctl_whoami() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0
}

_stepctl_logout() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--everywhere --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0
}

_stepctl_account() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    create|confirm|password|export|delete)
        # Offer subcommand argument completions
        "_stepctl_account_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'create confirm password export delete' -- "${cur}"))
        ;;
    esac
}

_stepctl_account_create() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--yes -y --no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--email --ca)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--email')
        return
        ;;
    '--ca')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    esac
}

_stepctl_account_confirm() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--email --ca)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--email')
        return
        ;;
    '--ca')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    esac
}

_stepctl_account_password() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--email --ca)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--email')
        return
        ;;
    '--ca')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    esac
}

_stepctl_account_export() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(-o --output)
    __stepctl_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '-o'|'--output')
        __stepctl_add_completions -f
        return
        ;;
    esac
}

_stepctl_account_delete() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0
}

_stepctl_scan() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--radio --save --speed --timeout)
    __stepctl_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--radio')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion scan -- --radio "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--save')
        __stepctl_add_completions -o plusdirs -fX '!*.@(btsnoop)'
        return
        ;;
    '--speed')
        return
        ;;
    '--timeout')
        return
        ;;
    esac
}

_stepctl_calibrate() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--again --yes -y --dry-run --no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--step --seconds --captures --vehicle --radio)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--step')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion calibrate -- --step "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--seconds')
        return
        ;;
    '--captures')
        __stepctl_add_completions -d
        return
        ;;
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion calibrate -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--radio')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion calibrate -- --radio "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion calibrate -- positional@0 "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_stepctl_evaluate() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=(--outcomes)
    non_repeating_options=(--positions --plot --vehicle)
    __stepctl_offer_flags_options -1

    # Offer option value completions
    case "${prev}" in
    '--positions')
        __stepctl_add_completions -o plusdirs -fX '!*.@(csv)'
        return
        ;;
    '--outcomes')
        __stepctl_add_completions -o plusdirs -fX '!*.@(jsonl)'
        return
        ;;
    '--plot')
        __stepctl_add_completions -d
        return
        ;;
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion evaluate -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    *)
        __stepctl_add_completions -o plusdirs -fX '!*.@(btsnoop)'
        return
        ;;
    esac
}

_stepctl_provision() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    vehicle|start|update|renew|relocate|keys|token|beacon|tag|qr|watcher)
        # Offer subcommand argument completions
        "_stepctl_provision_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'vehicle start update renew relocate keys token beacon tag qr watcher' -- "${cur}"))
        ;;
    esac
}

_stepctl_provision_vehicle() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--force --no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=(--beacon)
    non_repeating_options=(--name --uuid --topic --host --port --steps --servo --operator --fleet --code --ca --feed --at --keys)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--name')
        return
        ;;
    '--uuid')
        return
        ;;
    '--topic')
        return
        ;;
    '--host')
        return
        ;;
    '--port')
        return
        ;;
    '--steps')
        return
        ;;
    '--servo')
        __stepctl_add_completions -W 'simulated'$'\n''pwm'$'\n''pca9685'
        return
        ;;
    '--beacon')
        return
        ;;
    '--operator')
        __stepctl_add_completions -d
        return
        ;;
    '--fleet')
        return
        ;;
    '--code')
        return
        ;;
    '--ca')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    '--feed')
        return
        ;;
    '--at')
        return
        ;;
    '--keys')
        __stepctl_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_provision_start() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--vehicle)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision start -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_provision_update() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--vehicle)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision update -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_provision_renew() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--vehicle)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision renew -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_provision_relocate() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--vehicle)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision relocate -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_provision_keys() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--drawn --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(-o --output)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '-o'|'--output')
        __stepctl_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_provision_token() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--force --drawn --json --quiet -q --no-color --version -h --help)
    repeating_options=(--steps)
    non_repeating_options=(--vehicle --rider --device --from --for --device-key -o --output)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision token -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--rider')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision token -- --rider "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--device')
        __stepctl_add_completions -f
        return
        ;;
    '--from')
        return
        ;;
    '--steps')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision token -- --steps "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--for')
        return
        ;;
    '--device-key')
        __stepctl_add_completions -o plusdirs -fX '!*.@(jwk)'
        return
        ;;
    '-o'|'--output')
        __stepctl_add_completions -f
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_provision_beacon() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--save --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--step --minor --measured-power --vehicle)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--step')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision beacon -- --step "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--minor')
        return
        ;;
    '--measured-power')
        return
        ;;
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision beacon -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision beacon -- positional@0 "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_stepctl_provision_tag() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--sdm --lock --replace-all --register --dry-run --batch --yes -y --no-input --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--step --count --vehicle --nfc --timeout)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--step')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision tag -- --step "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--count')
        return
        ;;
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision tag -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--nfc')
        __stepctl_add_completions -W 'pn532_uart:/dev/ttyUSB0'$'\n''pn532_i2c:/dev/i2c-1'$'\n''pn532_spi:/dev/spidev0.0'$'\n''pn53x_usb'
        return
        ;;
    '--timeout')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision tag -- positional@0 "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_stepctl_provision_qr() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--sheet --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--step --format -o --output --level --size --paper --copies --vehicle)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--step')
        return
        ;;
    '--format')
        __stepctl_add_completions -W 'terminal'$'\n''png'$'\n''svg'$'\n''pdf'
        return
        ;;
    '-o'|'--output')
        __stepctl_add_completions -o plusdirs -fX '!*.@(png|svg|pdf)'
        return
        ;;
    '--level')
        __stepctl_add_completions -W 'L'$'\n''M'$'\n''Q'$'\n''H'
        return
        ;;
    '--size')
        return
        ;;
    '--paper')
        __stepctl_add_completions -W 'a4'$'\n''letter'
        return
        ;;
    '--copies')
        return
        ;;
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision qr -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision qr -- positional@0 "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac
}

_stepctl_provision_watcher() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--home-assistant --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--vehicle --name --for)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--vehicle')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion provision watcher -- --vehicle "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--name')
        return
        ;;
    '--for')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    init|tokens|riders|vehicles|tags|log|revoke|publish|renew|move|keys)
        # Offer subcommand argument completions
        "_stepctl_operator_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'init tokens riders vehicles tags log revoke publish renew move keys' -- "${cur}"))
        ;;
    esac
}

_stepctl_operator_init() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--host --port)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--host')
        return
        ;;
    '--port')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_tokens() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--all --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--rider)
    __stepctl_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--rider')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion operator tokens -- --rider "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_riders() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 2

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_vehicles() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 2

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_tags() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 2

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_log() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--follow -f --verify --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--lines --timeout)
    __stepctl_offer_flags_options 2

    # Offer option value completions
    case "${prev}" in
    '--lines')
        return
        ;;
    '--timeout')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_revoke() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--rider --token --device --timeout)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--rider')
        __stepctl_add_completions -W "$(__stepctl_custom_complete ---completion operator revoke -- --rider "${COMP_CWORD}" "$(__stepctl_cursor_index_in_current_word)")"
        return
        ;;
    '--token')
        return
        ;;
    '--device')
        return
        ;;
    '--timeout')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_publish() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_renew() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--list --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--within)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--within')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_move() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--host --port)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--host')
        return
        ;;
    '--port')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_keys() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    show|rotate|retire)
        # Offer subcommand argument completions
        "_stepctl_operator_keys_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'show rotate retire' -- "${cur}"))
        ;;
    esac
}

_stepctl_operator_keys_show() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 1

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_keys_rotate() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--force --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--key --timeout)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--key')
        __stepctl_add_completions -f
        return
        ;;
    '--timeout')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_operator_keys_retire() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--force --json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--timeout)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--timeout')
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -d
        return
        ;;
    esac
}

_stepctl_traffic() {
    repeating_flags=()
    non_repeating_flags=(--version -h --help)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options 0

    # Offer subcommand / subcommand argument completions
    local -r subcommand="${unparsed_words[0]}"
    unset 'unparsed_words[0]'
    unparsed_words=("${unparsed_words[@]}")
    case "${subcommand}" in
    serve|watch|delay|guard)
        # Offer subcommand argument completions
        "_stepctl_traffic_${subcommand}"
        ;;
    *)
        # Offer subcommand completions
        COMPREPLY+=($(compgen -W 'serve watch delay guard' -- "${cur}"))
        ;;
    esac
}

_stepctl_traffic_serve() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--ca --cert --key --crl --port --address --map --replay)
    __stepctl_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--ca')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    '--cert')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    '--key')
        __stepctl_add_completions -o plusdirs -fX '!*.@(key)'
        return
        ;;
    '--crl')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    '--port')
        return
        ;;
    '--address')
        return
        ;;
    '--map')
        __stepctl_add_completions -o plusdirs -fX '!*.@(json)'
        return
        ;;
    '--replay')
        __stepctl_add_completions -o plusdirs -fX '!*.@(jsonl)'
        return
        ;;
    esac
}

_stepctl_traffic_watch() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--feed --at --radius --ca --cert --key --scene --for --save)
    __stepctl_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--feed')
        return
        ;;
    '--at')
        return
        ;;
    '--radius')
        return
        ;;
    '--ca')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    '--cert')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    '--key')
        __stepctl_add_completions -o plusdirs -fX '!*.@(key)'
        return
        ;;
    '--scene')
        __stepctl_add_completions -o plusdirs -fX '!*.@(json)'
        return
        ;;
    '--for')
        return
        ;;
    '--save')
        __stepctl_add_completions -o plusdirs -fX '!*.@(jsonl)'
        return
        ;;
    esac
}

_stepctl_traffic_delay() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--feed --at --radius --ca --cert --key --for --save --plot)
    __stepctl_offer_flags_options 0

    # Offer option value completions
    case "${prev}" in
    '--feed')
        return
        ;;
    '--at')
        return
        ;;
    '--radius')
        return
        ;;
    '--ca')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    '--cert')
        __stepctl_add_completions -o plusdirs -fX '!*.@(pem)'
        return
        ;;
    '--key')
        __stepctl_add_completions -o plusdirs -fX '!*.@(key)'
        return
        ;;
    '--for')
        return
        ;;
    '--save')
        __stepctl_add_completions -o plusdirs -fX '!*.@(jsonl)'
        return
        ;;
    '--plot')
        __stepctl_add_completions -o plusdirs -fX '!*.@(svg)'
        return
        ;;
    esac
}

_stepctl_traffic_guard() {
    repeating_flags=(--verbose -v)
    non_repeating_flags=(--json --quiet -q --no-color --version -h --help)
    repeating_options=()
    non_repeating_options=(--scene)
    __stepctl_offer_flags_options 1

    # Offer option value completions
    case "${prev}" in
    '--scene')
        __stepctl_add_completions -o plusdirs -fX '!*.@(json)'
        return
        ;;
    esac

    # Offer positional completions
    case "${positional_number}" in
    1)
        __stepctl_add_completions -o plusdirs -fX '!*.@(jsonl)'
        return
        ;;
    esac
}

_stepctl_help() {
    repeating_flags=()
    non_repeating_flags=(--version)
    repeating_options=()
    non_repeating_options=()
    __stepctl_offer_flags_options -1
    case "${COMP_WORDS[*]:2:COMP_CWORD - 2}" in
    '') COMPREPLY+=($(compgen -W 'open close stop status find locate enroll unlock lock config doctor login book bookings vehicles zones whoami logout account scan calibrate evaluate provision operator traffic' -- "${cur}")) ;;
    'config') COMPREPLY+=($(compgen -W 'show path list import forget' -- "${cur}")) ;;
    'bookings') COMPREPLY+=($(compgen -W 'list show extend cancel end' -- "${cur}")) ;;
    'account') COMPREPLY+=($(compgen -W 'create confirm password export delete' -- "${cur}")) ;;
    'provision') COMPREPLY+=($(compgen -W 'vehicle start update renew relocate keys token beacon tag qr watcher' -- "${cur}")) ;;
    'operator') COMPREPLY+=($(compgen -W 'init tokens riders vehicles tags log revoke publish renew move keys' -- "${cur}")) ;;
    'operator keys') COMPREPLY+=($(compgen -W 'show rotate retire' -- "${cur}")) ;;
    'traffic') COMPREPLY+=($(compgen -W 'serve watch delay guard' -- "${cur}")) ;;
    esac
}

complete -o filenames -F _stepctl stepctl
