package evidence

import (
	"encoding/json"
	"iter"
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
)

// ENI is one interface in the daemon's datastore, decoded from /v1/enis of any release.
type ENI struct {
	ID         string    `json:"id,omitzero" key:"true"`
	Card       int       `json:"card,omitzero"`
	Device     int       `json:"device,omitzero"`
	Primary    bool      `json:"primary,omitzero"`
	Trunk      bool      `json:"trunk,omitzero"`
	EFA        bool      `json:"efa,omitzero"`
	Excluded   bool      `json:"excluded,omitzero"` // its subnet is excluded from pod addresses
	Subnet     string    `json:"subnet,omitzero"`
	RouteTable *int      `json:"routeTable,omitzero"` // 254 is main
	IPs        []Address `json:"ips,omitzero"`        // secondary IPs only
	Prefixes   []Prefix  `json:"prefixes,omitzero"`
}

// Records yields the addresses of the interface that have a record.
func (e ENI) Records() iter.Seq[Address] {
	return func(yield func(Address) bool) {
		for _, a := range e.IPs {
			if !yield(a) {
				return
			}
		}
		for _, p := range e.Prefixes {
			for _, a := range p.IPs {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// Prefix is a /28 or /80 of an ENI, with the addresses that have a record.
type Prefix struct {
	CIDR netip.Prefix `json:"cidr,omitzero"`
	IPs  []Address    `json:"ips,omitzero"`
}

// Address is an address in the datastore. It is assigned while it has a pod. Without a pod and
// times it was never assigned.
type Address struct {
	Address      netip.Addr `json:"address,omitzero"`
	Pod          *Pod       `json:"pod,omitzero"`
	AssignedAt   time.Time  `json:"assignedAt,omitzero"`
	UnassignedAt time.Time  `json:"unassignedAt,omitzero"`
}

// Counters are the running counters of /v1/enis for one network card. Upstream's drift, even
// below zero.
type Counters struct {
	TotalIPs    int `json:"totalIPs,omitzero" signed:"true"`
	AssignedIPs int `json:"assignedIPs,omitzero" signed:"true"`
}

// Env holds the two settings documents, with their original keys.
type Env struct {
	IPAMD        introspect.IPAMEnv    `json:"ipamd,omitzero"`
	NetworkUtils introspect.NetworkEnv `json:"networkutils,omitzero"`
}

// Daemon holds the documents that only our daemon serves.
type Daemon struct {
	Summary  Source[introspect.Summary]      `json:"intro.summary"`
	Config   Source[introspect.NodeConfig]   `json:"intro.config"`
	Plan     Source[introspect.NodePlan]     `json:"intro.plan"`
	Failures Source[introspect.NodeFailures] `json:"intro.failures"`
	Journal  Source[introspect.NodeEvents]   `json:"intro.events"`
	PodViews Source[[]introspect.NodePod]    `json:"intro.pod"`
}

// Metrics is one scrape. Series are named as in the text format.
type Metrics struct {
	ProcessStart time.Time          `json:"processStart,omitzero"`
	Samples      map[string]float64 `json:"samples,omitzero" signed:"true"`
}

// Checkpoint is the daemon's checkpoint.
type Checkpoint struct {
	Path        string       `json:"path,omitzero"`
	Bytes       *int         `json:"bytes,omitzero"`
	Error       *string      `json:"error,omitzero"` // why it cannot be used
	Version     string       `json:"version,omitzero"`
	ModifiedAt  time.Time    `json:"modifiedAt,omitzero"`
	Temporary   *int         `json:"temporary,omitzero"` // number of ipam.json.tmp* files next to it
	Allocations []Allocation `json:"allocations,omitzero"`
}

// Allocation is one assignment of the checkpoint.
type Allocation struct {
	Pod     Pod        `json:"pod,omitzero"`
	Address netip.Addr `json:"address,omitzero" key:"true"`
	At      time.Time  `json:"at,omitzero"`
}

// Log is a section of a log, oldest line first.
type Log struct {
	From      time.Time `json:"from,omitzero"`
	To        time.Time `json:"to,omitzero"`
	Truncated bool      `json:"truncated,omitzero"` // lines are missing: a limit was reached, or the transfer was cut off
	Lines     []Line    `json:"lines,omitzero"`
	Previous  *Log      `json:"previous,omitempty"` // log of the run before the last restart; containers only
}

// Line is one message, or several similar ones, the last at At. Until a raw line of a file is
// parsed, only Text is set.
type Line struct {
	Text  string        `json:"-"`
	At    time.Time     `json:"at,omitzero"`
	Level string        `json:"level,omitempty"`
	Msg   string        `json:"msg,omitzero"`
	Count int           `json:"count,omitempty"` // 0 means 1
	Every time.Duration `json:"every,omitempty"` // interval between the similar messages
}

// plain is a line without its own form in JSON.
type plain Line

// MarshalJSON writes a raw line as a text.
func (l Line) MarshalJSON() ([]byte, error) {
	if l.Text != "" {
		return json.Marshal(l.Text)
	}
	every := ""
	if l.Every > 0 {
		every = l.Every.String()
	}
	return json.Marshal(struct {
		plain
		Every string `json:"every,omitzero"`
	}{plain(l), every})
}

// UnmarshalJSON accepts a raw line as a text.
func (l *Line) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*l = Line{}
		return json.Unmarshal(data, &l.Text)
	}
	return json.Unmarshal(data, (*plain)(l))
}
