package fleetsim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"
)

// Protocols of pods/exec; v5 lets the client end stdin.
const (
	execV5 = "v5.channel.k8s.io"
	execV4 = "v4.channel.k8s.io"
)

// podExec runs the only program in our containers, cnictl, and only over a WebSocket: "cnictl
// local dial", which connects its streams to the daemon's introspection, wherever that
// listens, and "cnictl local doctor", which prints what [Options.Doctor] returns.
func (s *Sim) podExec(w http.ResponseWriter, r *http.Request, q request) error {
	n, err := s.podOf(q)
	if err != nil {
		return err
	}
	if n == nil || n.has(NotReady) {
		return apierrors.NewBadRequest(fmt.Sprintf("container not found (%q)", r.URL.Query().Get("container")))
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return apierrors.NewBadRequest("Upgrade request required: only WebSocket is served")
	}
	if !wait(r.Context(), s.opts.Latency) {
		return nil
	}
	channels := []wsstream.ChannelType{wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.IgnoreChannel}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		execV5: {Binary: true, Channels: channels}, execV4: {Binary: true, Channels: channels},
	})
	_, ends, err := conn.Open(w, r)
	if err != nil {
		return nil // it has answered
	}
	stdin, stdout, failure := ends[0], ends[1], ends[3]
	argv := r.URL.Query()["command"]
	if n.release == "" && slices.Contains(argv, "doctor") && s.opts.Doctor != nil {
		_, _ = stdout.Write(s.opts.Doctor(n.name))
		_ = json.NewEncoder(failure).Encode(metav1.Status{Status: metav1.StatusSuccess})
		return conn.Close()
	}
	if n.release != "" || !slices.Contains(argv, "dial") {
		status := metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: fmt.Sprintf(
			"Internal error occurred: error executing command in container: failed to exec in container: OCI runtime exec failed: exec failed: unable to start container process: exec: %q: executable file not found in $PATH", strings.Join(argv[:min(1, len(argv))], ""))}
		_ = json.NewEncoder(failure).Encode(status)
		return conn.Close()
	}
	stream, err := s.streams.open(r.Context(), n, IntrospectionPort)
	if err != nil {
		return conn.Close()
	}
	defer s.whenStopped(func() { _ = stream.Close() })()
	var reading sync.WaitGroup
	defer reading.Wait()
	defer conn.Close() // ends stdin
	defer stream.Close()
	reading.Go(func() { _, _ = io.Copy(stream, stdin) })
	_, _ = io.Copy(stdout, stream) // when the daemon closes, the program ends, whatever stdin does
	_ = json.NewEncoder(failure).Encode(metav1.Status{Status: metav1.StatusSuccess})
	return nil
}
