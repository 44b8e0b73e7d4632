cuda_tile.module @casts {
  entry @through_f8(%x: tile<f32>) {
    %codes = ftof %x : tile<f32> -> tile<f8E4M3FN>
    %y = ftof %codes : tile<f8E4M3FN> -> tile<f32>
    return
  }
}
