import CSystemd
import Glibc

/// The functions of sd-bus(3) that this program uses.
///
/// libsystemd depends on libraries for compression and cryptography. Linking them all would slow down every start of
/// the program by a seventh, so libsystemd is loaded when a radio needs it.
struct SDBus {
  let openSystem: sd_bus_open_system_f
  let closeUnref: sd_bus_close_unref_f
  let getDescriptor: sd_bus_get_fd_f
  let process: sd_bus_process_f
  let send: sd_bus_send_f
  let messageNewMethodCall: sd_bus_message_new_method_call_f
  let messageSetAutoStart: sd_bus_message_set_auto_start_f
  let messageAppendBasic: sd_bus_message_append_basic_f
  let messageOpenContainer: sd_bus_message_open_container_f
  let messageCloseContainer: sd_bus_message_close_container_f
  let messageEnterContainer: sd_bus_message_enter_container_f
  let messageExitContainer: sd_bus_message_exit_container_f
  let messageReadBasic: sd_bus_message_read_basic_f
  let messageReadArray: sd_bus_message_read_array_f
  let messageSkip: sd_bus_message_skip_f
  let messageGetPath: sd_bus_message_get_path_f
  let messageGetSender: sd_bus_message_get_sender_f
  let messageGetError: sd_bus_message_get_error_f
  let messageGetReplyCookie: sd_bus_message_get_reply_cookie_f
  let messageIsSignal: sd_bus_message_is_signal_f
  let messageIsMethodCall: sd_bus_message_is_method_call_f
  let messageNewMethodReturn: sd_bus_message_new_method_return_f
  let replyMethodErrno: sd_bus_reply_method_errno_f
  let messageUnref: sd_bus_message_unref_f

  /// Why libsystemd cannot be loaded, in the loader's words.
  struct Missing: Error { let reason: String }

  init() throws(Missing) {
    guard let library = dlopen("libsystemd.so.0", RTLD_NOW) else { throw Missing(reason: Self.reason) }
    func function<Function>(_ name: String) throws(Missing) -> Function {
      guard let symbol = dlsym(library, "sd_bus_\(name)") else { throw Missing(reason: Self.reason) }
      return unsafeBitCast(symbol, to: Function.self)
    }
    openSystem = try function("open_system")
    closeUnref = try function("close_unref")
    getDescriptor = try function("get_fd")
    process = try function("process")
    send = try function("send")
    messageNewMethodCall = try function("message_new_method_call")
    messageSetAutoStart = try function("message_set_auto_start")
    messageAppendBasic = try function("message_append_basic")
    messageOpenContainer = try function("message_open_container")
    messageCloseContainer = try function("message_close_container")
    messageEnterContainer = try function("message_enter_container")
    messageExitContainer = try function("message_exit_container")
    messageReadBasic = try function("message_read_basic")
    messageReadArray = try function("message_read_array")
    messageSkip = try function("message_skip")
    messageGetPath = try function("message_get_path")
    messageGetSender = try function("message_get_sender")
    messageGetError = try function("message_get_error")
    messageGetReplyCookie = try function("message_get_reply_cookie")
    messageIsSignal = try function("message_is_signal")
    messageIsMethodCall = try function("message_is_method_call")
    messageNewMethodReturn = try function("message_new_method_return")
    replyMethodErrno = try function("reply_method_errno")
    messageUnref = try function("message_unref")
  }

  private static var reason: String { dlerror().map { String(cString: $0) } ?? "unknown" }
}
