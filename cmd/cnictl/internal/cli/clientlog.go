package cli

import (
	"flag"
	"io"
	"os"
	"strconv"

	"k8s.io/klog/v2" //nolint:depguard // client-go logs through it, and nothing of ours does
)

// quietClients sends the log of the Kubernetes client where -v and --log-file say, and
// without -v nowhere: what matters of it comes back as errors.
func (f *Factory) quietClients() error {
	out := io.Discard
	switch {
	case f.Globals.Verbosity == 0:
	case f.Globals.LogFile != "":
		file, err := os.OpenFile(f.Globals.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return Usage("--log-file: %v", err)
		}
		out = file // open until the process ends: the client logs until then
	default:
		out = f.Streams.Err
	}
	var fs flag.FlagSet
	klog.InitFlags(&fs)
	for name, value := range map[string]string{
		"logtostderr": "false", "stderrthreshold": "FATAL", "one_output": "true", "v": strconv.Itoa(f.Globals.Verbosity),
	} {
		_ = fs.Set(name, value) // names and values are klog's own
	}
	klog.SetOutput(out)
	return nil
}
