@main struct Stepd { static func main() {} }
