extension GrayPicture {
  /// With half as many pixels each way until there are at most four million, which show all that is not in focus.
  var reduced: GrayPicture {
    guard pixels.count > 4_000_000, width > 1, height > 1 else { return self }
    let (halfWidth, halfHeight) = (width / 2, height / 2)
    let means = [UInt8](unsafeUninitializedCapacity: halfWidth * halfHeight) { means, count in
      pixels.withUnsafeBufferPointer { pixels in
        for y in 0..<halfHeight {
          for x in 0..<halfWidth {
            let place = 2 * y * width + 2 * x
            let upper = Int(pixels[place]) + Int(pixels[place + 1])
            let lower = Int(pixels[place + width]) + Int(pixels[place + width + 1])
            means[y * halfWidth + x] = UInt8((upper + lower + 2) / 4)
          }
        }
      }
      count = halfWidth * halfHeight
    }
    return GrayPicture(width: halfWidth, height: halfHeight, pixels: means).reduced
  }

  /// With edges made steeper (unsharp masking): each pixel is moved away from the mean around it, to three times the
  /// distance. It brings out codes that are out of focus.
  var sharpened: GrayPicture {
    let radius = 4
    let area = (2 * radius + 1) * (2 * radius + 1)
    // At the edges the picture goes on as it ends. The sums of a window's columns change by two rows from line to line,
    // and the sum of the window by two columns from pixel to pixel.
    func column(_ x: Int) -> Int { min(max(x, 0), width - 1) }
    func row(_ y: Int) -> Int { min(max(y, 0), height - 1) * width }
    let sharp = [UInt8](unsafeUninitializedCapacity: pixels.count) { sharp, count in
      pixels.withUnsafeBufferPointer { pixels in
        var sums = (0..<width).map { x in (-radius...radius).reduce(0) { $0 + Int(pixels[row($1) + x]) } }
        for y in 0..<height {
          var sum = (-radius...radius).reduce(0) { $0 + sums[column($1)] }
          for x in 0..<width {
            let value = Int(pixels[y * width + x])
            sharp[y * width + x] = UInt8(clamping: value + 2 * (value - sum / area))
            sum += sums[column(x + radius + 1)] - sums[column(x - radius)]
          }
          for x in 0..<width { sums[x] += Int(pixels[row(y + radius + 1) + x]) - Int(pixels[row(y - radius) + x]) }
        }
      }
      count = pixels.count
    }
    return GrayPicture(width: width, height: height, pixels: sharp)
  }
}
