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

// clientLog guards klog's flags, which are global: concurrent commands in one process share
// its log.
var clientLog struct {
	sync.Mutex
	verbosity string // the current setting; "" if never set
}

// quietClients sends the Kubernetes client's log where -v and --log-file say, and discards it
// without -v: whatever matters is returned as an error.
func quietClients(f *cli.Factory) error {
	out := io.Discard
	switch {
	case f.Globals.Verbosity == 0:
	case f.Globals.LogFile != "":
		file, err := os.OpenFile(f.Globals.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return cli.Usage("--log-file: %v", err)
		}
		out = file // never closed: the client may log until the process ends
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
		return // setting it again would race with a client that is logging
	}
	clientLog.verbosity = verbosity
	var fs flag.FlagSet
	klog.InitFlags(&fs)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL", "one_output": "true", "v": verbosity} {
		_ = fs.Set(name, value) // cannot fail: names and values are klog's own
	}
}
