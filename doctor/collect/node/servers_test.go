package node

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"net/netip"

	"cnictl/daemon/api/introspect"
	"cnictl/doctor/evidence"
	"cnictl/testenv"
)

// serve answers the given paths, and others with 404.
func serve(t *testing.T, answers map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.Path]
		switch {
		case answer == "hang":
			<-r.Context().Done()
		case answer == "403":
			w.WriteHeader(http.StatusForbidden)
		case answer == "500":
			w.WriteHeader(http.StatusInternalServerError)
		case !ok:
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte(answer)) // the client has gone
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestIMDS(t *testing.T) {
	t.Parallel()
	const meta, eni = "GET /latest/meta-data/", "GET /latest/meta-data/network/interfaces/macs/02:00:00:00:00:01/"
	healthy := map[string]string{
		"PUT /latest/api/token": "token", meta + "instance-id": "i-1", meta + "instance-type": "m5.large", meta + "placement/availability-zone": "eu-west-1a",
		meta + "network/interfaces/macs/": "02:00:00:00:00:01/\n", eni + "interface-id": "eni-a", eni + "device-number": "0", eni + "subnet-id": "subnet-a",
		eni + "local-ipv4s": "10.0.0.4\n10.0.0.5", eni + "ipv4-prefix": "10.0.1.0/28", eni + "vpc-ipv4-cidr-blocks": "10.0.0.0/16\n100.64.0.0/16",
	}
	with := func(path, answer string) map[string]string {
		out := map[string]string{}
		for k, v := range healthy {
			out[k] = v
		}
		out[path] = answer
		return out
	}
	for name, c := range map[string]struct {
		answers map[string]string
		token   string // of the content
		missing string // prefix of the reason
	}{
		"healthy":       {healthy, "ok", ""},
		"forbidden":     {map[string]string{"PUT /latest/api/token": "403"}, "forbidden", ""},
		"not found":     {nil, "not-found", ""},
		"token hangs":   {map[string]string{"PUT /latest/api/token": "hang"}, "timeout", ""},
		"tree hangs":    {with(meta+"instance-id", "hang"), "", evidence.MissingTimeout},
		"token fails":   {map[string]string{"PUT /latest/api/token": "500"}, "failed", ""},
		"no instance":   {with(meta+"instance-id", "403"), "failed", ""},
		"empty list":    {with(meta+"network/interfaces/macs/", "\n"), "failed", ""},
		"no list":       {with(meta+"network/interfaces/macs/", "500"), "failed", ""},
		"no address":    {with(eni+"local-ipv4s", "ten"), "", "metadata network/interfaces"},
		"no device":     {with(eni+"device-number", "-1"), "", "metadata network/interfaces"},
		"no prefix":     {with(eni+"ipv4-prefix", "10.0.0.0"), "", "metadata network/interfaces"},
		"tree fails":    {with(eni+"interface-id", "500"), "", "metadata network/interfaces"},
		"endless lists": {with(meta+"network/interfaces/macs/", strings.Repeat("x", maxAnswer+1)), "", "more than 8 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, t.TempDir())
			o.Metadata, o.Timeout = serve(t, c.answers)+"/", testenv.Left(t)
			if c.missing == evidence.MissingTimeout {
				o.Timeout = 5 * time.Second //realtime: the token comes within that
			}
			got := Read(t.Context(), o).IMDS
			if got.Content.Token != c.token || (got.Missing == "") != (c.missing == "") || !strings.HasPrefix(got.Missing, c.missing) {
				t.Errorf("token %q, missing %q; want %q and %q", got.Content.Token, got.Missing, c.token, c.missing)
			}
			if failure := map[string]string{
				"token fails": "token: HTTP status 500", "no instance": "instance-id: HTTP status 403",
				"empty list": "network/interfaces/macs/: empty", "no list": "network/interfaces/macs/: HTTP status 500",
			}[name]; got.Content.Failure != failure {
				t.Errorf("failure %q, want %q", got.Content.Failure, failure)
			}
			if name != "healthy" {
				return
			}
			want := evidence.IMDS{
				Token: "ok", Instance: "i-1", InstanceType: "m5.large", Zone: "eu-west-1a", VPCCIDRs: cidrs("10.0.0.0/16", "100.64.0.0/16"),
				ENIs: []evidence.IMDSInterface{{
					ID: "eni-a", MAC: "02:00:00:00:00:01", Subnet: "subnet-a", IPs: []netip.Addr{netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("10.0.0.5")},
					Prefixes: cidrs("10.0.1.0/28"),
				}},
			}
			if d := cmp.Diff(want, got.Content, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestIMDS_Refused: a host that refuses the connection is an answer.
func TestIMDS_Refused(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(nil)
	s.Close()
	o := options(t, t.TempDir())
	o.Metadata = s.URL
	if got := Read(t.Context(), o).IMDS; got.Content.Token != "refused" || got.Missing != "" {
		t.Errorf("token %q, missing %q", got.Content.Token, got.Missing)
	}
}

func cidrs(texts ...string) (out []netip.Prefix) {
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

// TestDocuments_Hostile: a daemon that answers nonsense, too much, or too late affects only
// its own sources.
func TestDocuments_Hostile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, missing string }{
		"hangs": {"hang", evidence.MissingTimeout}, "forbids": {"403", evidence.MissingForbidden}, "fails": {"500", "the daemon answered with HTTP status 500"},
		"nonsense": {"\x00{", "the document is not a JSON object"}, "too much": {strings.Repeat("[", 9<<20), "/v1/summary"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := map[string]string{}
			for _, path := range introspect.DocumentPaths {
				answers["GET "+path] = c.answer
			}
			o := options(t, t.TempDir())
			o.Address, o.Timeout = serve(t, answers), testenv.Left(t)
			if c.missing == evidence.MissingTimeout {
				o.Timeout = time.Second //realtime: nothing answers
			}
			r := Read(t.Context(), o)
			for source, missing := range map[string]string{"intro.summary": r.Summary.Missing, "intro.env": r.Env.Missing} {
				if !strings.Contains(missing, strings.TrimPrefix(c.missing, "/v1/summary")) || missing == "" {
					t.Errorf("%s is missing because of %q, want %q", source, missing, c.missing)
				}
			}
			if !r.Links.OK() {
				t.Errorf("kern.link is missing: %s", r.Links.Missing)
			}
		})
	}
	t.Run("hangs up", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		}()
		o := options(t, t.TempDir())
		o.Address, o.Timeout = l.Addr().String(), testenv.Left(t)
		if r := Read(t.Context(), o); !strings.Contains(r.Summary.Missing, "connection lost") {
			t.Errorf("missing because of %q", r.Summary.Missing)
		}
	})
}
