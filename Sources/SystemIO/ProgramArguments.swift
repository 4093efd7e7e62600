import CArguments

/// What this program was started with.
public enum ProgramArguments {
  /// The arguments after the program's name. `CommandLine.arguments` may lack them.
  public static let typed: [String] = {
    var typed: [String] = []
    while let argument = carguments_at(Int32(typed.count + 1)) { typed.append(String(cString: argument)) }
    return typed
  }()
}
