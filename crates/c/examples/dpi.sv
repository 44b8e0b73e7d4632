// Asks for conversions from SystemVerilog, by DPI. A conversion is a `chandle`; null takes the place of a message.
//
//     $ verilator --binary dpi.sv libtruecast_c.a -LDFLAGS "-lpthread -ldl -lm"

module dpi;
    import "DPI-C" function int truecast_type(
        string name, output int unsigned number, input chandle message, longint unsigned capacity);
    import "DPI-C" function int truecast_open(
        string words, int unsigned from, int unsigned to,
        output chandle cast, input chandle message, longint unsigned capacity);
    import "DPI-C" function int truecast_cast_one(
        chandle cast, longint unsigned code, output longint unsigned result);
    import "DPI-C" function int truecast_permitted(
        chandle cast, longint unsigned code, longint unsigned result, int unsigned nan);
    import "DPI-C" function void truecast_close(chandle cast);

    int status;
    int unsigned f32, e4m3;
    chandle cast;
    longint unsigned result;

    initial begin
        void'(truecast_type("f32", f32, null, 0));
        void'(truecast_type("f8e4m3fn", e4m3, null, 0));
        status = truecast_open("torch@2.15", f32, e4m3, cast, null, 0);
        if (status != 0)
            $fatal(1, "torch@2.15 is unknown");
        status = truecast_cast_one(cast, 64'h3f800000, result);
        if (status != 1)
            $fatal(1, "the result is not defined");
        $display("f32 3f800000 to f8e4m3fn: %h", result[7:0]);
        $display("39 is permitted: %0d", truecast_permitted(cast, 64'h3f800000, 64'h39, 0));
        truecast_close(cast);
        $finish;
    end
endmodule
