package fleetsim

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// podProxy serves pods/proxy: the API server dials the pod's address, which is the node's.
// It reaches the metrics; introspection listens only on the loopback.
func (s *Sim) podProxy(w http.ResponseWriter, r *http.Request, q request) error {
	name, portText, _ := strings.Cut(q.name, ":")
	q.name = name
	n, err := s.podOf(q)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(portText)
	if n == nil || err != nil || port != MetricsPort || n.refuses(port) != "" {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("error trying to reach service: dial tcp %s:%s: connect: connection refused", s.addressOf(n), portText))
	}
	if n.has(Dead) {
		<-r.Context().Done()
		return nil
	}
	inner := r.Clone(context.WithValue(r.Context(), streamKey{}, stream{node: n, port: port}))
	inner.URL.Path = "/" + strings.TrimPrefix(strings.TrimPrefix(q.sub, "proxy"), "/")
	s.serveNode(w, inner)
	return nil
}

func (s *Sim) addressOf(n *node) string {
	if n == nil {
		return "0.0.0.0"
	}
	return n.ip.String()
}
