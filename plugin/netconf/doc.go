// Package netconf holds the configuration that the aws-cni plugin reads on stdin and the
// conflist it comes from: one set of types, read by plugin/vpc and rendered by
// daemon/install, so that both always know the same keys.
//
// It also reads the other inputs of a run: the previous result, GC's list of attachments,
// the daemon's checkpoint.
//
// Reading is as lenient as upstream: unknown keys are skipped, bad numbers fall back to
// defaults, and only what upstream refuses is refused. Errors begin with upstream's words
// and add what is wrong at which offset. The JSON is parsed by hand: the first use of
// encoding/json costs a plugin run 0.15 ms, a twentieth of an ADD, and linking it with fmt
// and os a little more. Fuzz targets compare the parser's results with those of
// encoding/json.
package netconf
