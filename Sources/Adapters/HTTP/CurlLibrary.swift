import CCurl
import Glibc
import SystemIO

/// The functions of libcurl(3) that this program uses.
///
/// libcurl depends on thirty libraries, which take 8 to 22 ms to load. So it is loaded only when a server is asked.
struct CurlLibrary: Sendable {
  let easyInit: curl_easy_init_f
  let easyReset: curl_easy_reset_f
  let easyCleanup: curl_easy_cleanup_f
  let easyError: curl_easy_strerror_f
  /// Functions with variable arguments, which the shim calls. They are addresses of code, which nobody changes, so
  /// every thread may use them.
  nonisolated(unsafe) let setOption: UnsafeMutableRawPointer
  nonisolated(unsafe) let getInfo: UnsafeMutableRawPointer
  let listAppend: curl_slist_append_f
  let listFree: curl_slist_free_all_f
  let multiInit: curl_multi_init_f
  let multiAdd: curl_multi_add_handle_f
  let multiRemove: curl_multi_remove_handle_f
  let multiPerform: curl_multi_perform_f
  let multiPoll: curl_multi_poll_f
  let multiRead: curl_multi_info_read_f
  let multiCleanup: curl_multi_cleanup_f

  private static let file = "libcurl.so.4"

  /// Loads libcurl on another thread, for a caller that needs it later: the loader makes a second caller wait for the
  /// first. `init` reports a failure.
  static func loadAhead() {
    try? DetachedThread.startAhead { _ = dlopen(file, RTLD_LAZY) }
  }

  init() throws(HTTPError) {
    // Lazy, because few of the thirty libraries' functions are ever called.
    guard let library = dlopen(Self.file, RTLD_LAZY) else { throw .noLibrary(Self.reason) }
    func symbol(_ name: String) throws(HTTPError) -> UnsafeMutableRawPointer {
      guard let symbol = dlsym(library, "curl_\(name)") else { throw .noLibrary(Self.reason) }
      return symbol
    }
    func function<Function>(_ name: String) throws(HTTPError) -> Function {
      unsafeBitCast(try symbol(name), to: Function.self)
    }
    let globalInit: curl_global_init_f = try function("global_init")
    easyInit = try function("easy_init")
    easyReset = try function("easy_reset")
    easyCleanup = try function("easy_cleanup")
    easyError = try function("easy_strerror")
    setOption = try symbol("easy_setopt")
    getInfo = try symbol("easy_getinfo")
    listAppend = try function("slist_append")
    listFree = try function("slist_free_all")
    multiInit = try function("multi_init")
    multiAdd = try function("multi_add_handle")
    multiRemove = try function("multi_remove_handle")
    multiPerform = try function("multi_perform")
    multiPoll = try function("multi_poll")
    multiRead = try function("multi_info_read")
    multiCleanup = try function("multi_cleanup")
    guard globalInit(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK else { throw .noLibrary("curl_global_init failed") }
  }

  private static var reason: String { dlerror().map { String(cString: $0) } ?? "unknown" }
}
