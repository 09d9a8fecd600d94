package kubeapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cnictl/deploy"
)

const (
	auditPolicyFile = "audit.yaml"
	auditLogFile    = "audit.log"
)

// auditPolicy logs one line for each response to a ServiceAccount.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    userGroups: ["system:serviceaccounts"]
  - level: None
`

// Denial is a request that RBAC refused.
type Denial struct {
	User  string // "aws-node"
	Right string // "patch pods", "list eniconfigs.crd.k8s.amazonaws.com", "get /metrics"
}

func (d Denial) String() string { return d.User + " may not " + d.Right }

// auditEvent is the relevant part of an event of audit.k8s.io/v1.
type auditEvent struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	ObjectRef  *struct{ Resource, Subresource, APIGroup string }

	Annotations map[string]string
}

// forbidden reports whether RBAC refused the request. An admission policy answers 403 as well.
func (e auditEvent) forbidden() bool {
	return e.Annotations["authorization.k8s.io/decision"] == "forbid"
}

func (e auditEvent) denial() Denial {
	return Denial{User: strings.TrimPrefix(e.User.Username, userName("")), Right: e.right()}
}

// right is the right that the request needed.
func (e auditEvent) right() string {
	what, _, _ := strings.Cut(e.RequestURI, "?")
	if r := e.ObjectRef; r != nil {
		what = r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		if r.APIGroup != "" {
			what += "." + r.APIGroup
		}
	}
	return e.Verb + " " + what
}

// maxAuditLine bounds a line of the audit log, which repeats what the client sent.
const maxAuditLine = 1 << 20

// Denied lists the ServiceAccounts' requests that the server has refused so far, each
// kind once, in order.
func (s *Server) Denied() ([]Denial, error) {
	var out []Denial
	err := s.audited(func(line []byte) error {
		if !bytes.Contains(line, []byte(`:"forbid"`)) {
			return nil // almost all lines of a long test: not worth decoding
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if d := e.denial(); e.forbidden() && !slices.Contains(out, d) {
			out = append(out, d)
		}
		return nil
	})
	return out, err
}

// Used lists the rights that a ServiceAccount has used so far, each once, in order:
// "list pods", "patch cninodes.vpcresources.k8s.aws".
func (s *Server) Used(user string) ([]string, error) {
	used := map[string]bool{}
	name := []byte(`"` + userName(user) + `"`)
	err := s.audited(func(line []byte) error {
		if !bytes.Contains(line, name) {
			return nil
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.User.Username == userName(user) && !e.forbidden() {
			used[e.right()] = true
		}
		return nil
	})
	return slices.Sorted(maps.Keys(used)), err
}

// audited calls line for each line of the audit log.
func (s *Server) audited(line func([]byte) error) error {
	if s.dir == "" {
		return errors.New("read audit log: the server runs outside of this guest, and is checked there")
	}
	f, err := os.Open(filepath.Join(s.dir, auditLogFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no ServiceAccount has sent a request
	}
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxAuditLine)
	for lines.Scan() {
		if err := line(lines.Bytes()); err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	return nil
}

// unexpectedUses returns an error that names each right that was used although deploy/rbac
// marks it as unused.
func (s *Server) unexpectedUses() error {
	var errs []error
	for user, has := range users {
		used, err := s.Used(user)
		if err != nil {
			return err
		}
		for _, file := range has.files {
			unused, err := deploy.Unused(file)
			if err != nil {
				return err
			}
			for _, right := range unused {
				if slices.Contains(used, right) {
					errs = append(errs, fmt.Errorf("%s used %q: the role %s in deploy and docs/security.md say that it does not", user, right, file))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// expectations are the denials that tests announced.
type expectations struct {
	mu   sync.Mutex // guards list
	list []Denial
}

// ExpectDenied announces that the server will refuse a right to a user, such as "patch pods"
// to "aws-node", and that this is intended. In a shared server it applies to all tests.
func (s *Server) ExpectDenied(user, right string) {
	s.expected.mu.Lock()
	defer s.expected.mu.Unlock()
	s.expected.list = append(s.expected.list, Denial{User: user, Right: right})
}

// unexpectedDenials returns an error that names the requests refused unexpectedly.
func (s *Server) unexpectedDenials() error {
	denied, err := s.Denied()
	if err != nil {
		return err
	}
	s.expected.mu.Lock()
	defer s.expected.mu.Unlock()
	var errs []error
	for _, d := range denied {
		if !slices.Contains(s.expected.list, d) {
			errs = append(errs, fmt.Errorf("%s: deploy/rbac does not grant it", d))
		}
	}
	return errors.Join(errs...)
}
