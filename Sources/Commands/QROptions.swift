import ArgumentParser

/// Where a code is to be seen.
struct QROptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A picture of a code (PNG, JPEG), - for standard input, or a camera: /dev/video0.", valueName: "file|-|device"),
    completion: .file(extensions: ["png", "jpg", "jpeg"]))
  var qr: String?
}
