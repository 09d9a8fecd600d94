package access

import (
	"flag"
	"io"
	"os"
	"strconv"
	"sync"

	"k8s.io/klog/v2" //nolint:depguard // client-go logs through it, and nothing of ours does

	"cnictl/cmd/cnictl/internal/cli"
)

// clientLog guards the flags of klog, which are the process's: commands that run side by
// side in one process share its log.
var clientLog struct {
	sync.Mutex
	verbosity string // that is set; "": none was yet
}

// quietClients sends the Kubernetes client's log where -v and --log-file say, and without
// -v nowhere: what matters is returned as errors.
func quietClients(f *cli.Factory) error {
	out := io.Discard
	switch {
	case f.Globals.Verbosity == 0:
	case f.Globals.LogFile != "":
		file, err := os.OpenFile(f.Globals.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return cli.Usage("--log-file: %v", err)
		}
		out = file // open until the process ends: the client logs until then
	default:
		out = f.Streams.Err
	}
	setVerbosity(strconv.Itoa(f.Globals.Verbosity))
	klog.SetOutput(out)
	return nil
}

func setVerbosity(verbosity string) {
	clientLog.Lock()
	defer clientLog.Unlock()
	if verbosity == clientLog.verbosity {
		return // setting the same again would race with a client that logs
	}
	clientLog.verbosity = verbosity
	var fs flag.FlagSet
	klog.InitFlags(&fs)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL", "one_output": "true", "v": verbosity} {
		_ = fs.Set(name, value) // names and values are klog's own
	}
}
