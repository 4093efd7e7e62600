import CLinux
import Glibc

/// Rights that a process gives up for good before it reads bytes that may attack a library.
///
/// All of it fails closed: if a right cannot be given up, the caller gets an error and must not read.
package enum Confinement {
  /// Sets limits that end this process before it harms the machine. Programs that it starts gain no privileges. The
  /// process ends with the thread that started it. All descriptors except the standard ones are closed.
  ///
  /// - Parameters:
  ///   - memory: bytes of address space.
  ///   - seconds: processor time.
  package static func limit(memory: UInt, seconds: UInt) throws(SystemError) {
    // After a crash, the Swift runtime's handlers would start a program that prints a backtrace, and wait for it.
    for number in [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGQUIT] { signal(number, SIG_DFL) }
    try control(PR_SET_PDEATHSIG, UInt(SIGKILL))
    try control(PR_SET_NO_NEW_PRIVS, 1)
    _ = try check("close descriptors") { close_range(3, .max, 0) }
    try limit(RLIMIT_CORE, 0)
    try limit(RLIMIT_AS, memory)
    try limit(RLIMIT_CPU, seconds)
  }

  /// Keeps this process's memory out of core dumps and debuggers of the same user (PR_SET_DUMPABLE in prctl(2)). With
  /// `locksMemory` it also keeps it out of swap, if locked memory has no limit (`LimitMEMLOCK=infinity`).
  ///
  /// Nobody could do anything about a failure, so none is reported.
  package static func keepSecrets(locksMemory: Bool = false) {
    _ = control_process(PR_SET_DUMPABLE, 0, 0)
    try? limit(RLIMIT_CORE, 0)
    var memory = rlimit()
    guard locksMemory, getrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &memory) == 0,
      memory.rlim_cur == rlim_t(bitPattern: -1)
    else { return }
    // Lock pages when they are used; otherwise every library's whole text would be read at once. Linux 4.4 and later.
    _ = mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)
  }

  /// Gives up the extra rights of root or of file capabilities (capabilities(7)), and access to root's files. Open
  /// descriptors stay open.
  package static func dropPrivileges() throws(SystemError) {
    if geteuid() == 0 {
      // As far as possible: a container's root may lack the capability, or there may be no other user
      // (user_namespaces(7)).
      _ = setgroups(0, nil)
      _ = setgid(nobody)
      _ = setuid(nobody)
      // The change of credentials has cleared this setting.
      try control(PR_SET_PDEATHSIG, UInt(SIGKILL))
    }
    _ = try check("give up capabilities") { drop_capabilities() }
  }

  /// The user and the group that own nothing, both in Debian and in the kernel (`/proc/sys/kernel/overflowuid`).
  private static let nobody: uid_t = 65534

  /// Withholds capabilities that a service was given (`AmbientCapabilities=`) from the programs that it starts.
  package static func keepCapabilities() { _ = clear_ambient_capabilities() }

  /// Leaves this process only its memory, its open descriptors, and the ability to exit. From now on every other system
  /// call fails with EPERM (seccomp(2)).
  ///
  /// - Parameter controlsDevices: whether it may control open devices, such as a camera (ioctl(2)).
  /// - Throws: for example ENOSYS, on an architecture for which nobody has checked this.
  package static func computeOnly(controlsDevices: Bool = false) throws(SystemError) {
    try computeOnly(controlsDevices: controlsDevices, architecture: own_audit_architecture())
  }

  /// - Parameter architecture: this program's architecture as seccomp(2) names it (`AUDIT_ARCH_…`); 0 if unknown.
  static func computeOnly(controlsDevices: Bool, architecture: UInt32) throws(SystemError) {
    guard architecture != 0 else { throw SystemError("give up system calls", code: ENOSYS) }
    // The calls for allocation, locks of threads, clocks, Swift's seeds, and exit. Their numbers come from the
    // architecture that this is compiled for. arm64 has all of these calls (Linux, include/uapi/asm-generic/unistd.h).
    let calls =
      [
        SYS_read, SYS_write, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_futex,
        SYS_clock_gettime, SYS_getrandom, SYS_rt_sigreturn, SYS_exit, SYS_exit_group,
      ] + (controlsDevices ? [SYS_ioctl] : [])
    // Classic BPF (Linux, Documentation/userspace-api/seccomp_filter.rst). The fields of seccomp_data are at 0 (the
    // number of the call) and 4 (the architecture, which gives the number its meaning).
    var filter = [
      load(offset: 4), unless(equal: architecture, skip: UInt8(calls.count + 1)), load(offset: 0),
    ]
    for (index, call) in calls.enumerated() {
      filter.append(when(equal: UInt32(call), skip: UInt8(calls.count - index)))
    }
    filter.append(answer(UInt32(SECCOMP_RET_ERRNO) | UInt32(EPERM)))
    filter.append(answer(UInt32(SECCOMP_RET_ALLOW)))
    let result = filter.withUnsafeMutableBufferPointer { filter in
      var program = sock_fprog(len: UInt16(filter.count), filter: filter.baseAddress)
      return withUnsafePointer(to: &program) {
        control_process(PR_SET_SECCOMP, UInt(SECCOMP_MODE_FILTER), UInt(bitPattern: $0))
      }
    }
    if result == -1 { throw SystemError("give up system calls") }
  }

  // MARK: -

  private static func control(_ option: Int32, _ value: UInt) throws(SystemError) {
    _ = try check("give up privileges") { control_process(option, value, 0) }
  }

  private static func limit(_ resource: __rlimit_resource, _ value: UInt) throws(SystemError) {
    let resource = __rlimit_resource_t(resource.rawValue)
    var limit = rlimit()
    _ = try check("ask for a limit") { getrlimit(resource, &limit) }
    // A limit that was set for this process must not be raised.
    limit.rlim_max = min(limit.rlim_max, value)
    limit.rlim_cur = limit.rlim_max
    _ = try check("set a limit") { setrlimit(resource, &limit) }
  }

  private static func load(offset: UInt32) -> sock_filter {
    sock_filter(code: UInt16(BPF_LD | BPF_W | BPF_ABS), jt: 0, jf: 0, k: offset)
  }

  private static func when(equal value: UInt32, skip: UInt8) -> sock_filter {
    sock_filter(code: UInt16(BPF_JMP | BPF_JEQ | BPF_K), jt: skip, jf: 0, k: value)
  }

  private static func unless(equal value: UInt32, skip: UInt8) -> sock_filter {
    sock_filter(code: UInt16(BPF_JMP | BPF_JEQ | BPF_K), jt: 0, jf: skip, k: value)
  }

  private static func answer(_ value: UInt32) -> sock_filter {
    sock_filter(code: UInt16(BPF_RET | BPF_K), jt: 0, jf: 0, k: value)
  }
}
