@main struct Stepctl { static func main() {} }
