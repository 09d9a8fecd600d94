package completion

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
)

// Bounds of the file.
const (
	maxNames = 20_000 // of each kind
	maxName  = 512    // bytes: namespace and name of a pod
	maxFile  = 8 << 20
)

// Names are the names that can be completed. Nothing else is stored.
type Names struct {
	Nodes   []string `json:"nodes"`
	Pods    []string `json:"pods"` // namespace/name
	Subnets []string `json:"subnets"`
	ENIs    []string `json:"enis"`
}

// usable returns the names of each kind that are safe in a shell.
func (n Names) usable() Names {
	return Names{usable(n.Nodes), usable(n.Pods), usable(n.Subnets), usable(n.ENIs)}
}

// over returns n with the kinds that are nil taken from have.
func (n Names) over(have Names) Names {
	for _, kind := range []struct{ to, from *[]string }{{&n.Nodes, &have.Nodes}, {&n.Pods, &have.Pods}, {&n.Subnets, &have.Subnets},
		{&n.ENIs, &have.ENIs}} {
		if *kind.to == nil {
			*kind.to = *kind.from
		}
	}
	return n
}

func (n Names) equal(m Names) bool {
	return slices.Equal(n.Nodes, m.Nodes) && slices.Equal(n.Pods, m.Pods) && slices.Equal(n.Subnets, m.Subnets) && slices.Equal(n.ENIs, m.ENIs)
}

// fileOf returns the file for a cluster's names, below a cache directory. Its name does not
// reveal the cluster.
func fileOf(dir, cluster string) string {
	sum := sha256.Sum256([]byte(cluster))
	return filepath.Join(dir, "names-"+hex.EncodeToString(sum[:8])+".json")
}

// load reads the names; none if the file is missing or invalid.
func load(file string) Names {
	f, err := os.Open(file)
	if err != nil {
		return Names{}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(text) > maxFile {
		return Names{}
	}
	return parse(text)
}

func parse(text []byte) Names {
	var n Names
	if json.Unmarshal(text, &n) != nil {
		return Names{}
	}
	return n.usable()
}

// usable returns the names that are safe in a shell, sorted and without duplicates.
func usable(names []string) []string {
	out := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return !plain(s) })
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxNames)]
}

// plain reports whether s is a valid Kubernetes name.
func plain(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for _, r := range s {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-./", r) {
			return false
		}
	}
	return true
}

// keep stores names; a nil kind stays unchanged. Failing to write the cache is no error.
func keep(file string, n Names) {
	have := load(file)
	n = n.over(have).usable()
	if n.equal(have) {
		return
	}
	text, err := json.Marshal(n)
	if err != nil || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	_ = cli.ReplaceFile(file, text) // see above
}

// namespaces returns the namespaces of the pods.
func (n Names) namespaces() []string {
	var out []string
	for _, pod := range n.Pods {
		if namespace, _, ok := strings.Cut(pod, "/"); ok {
			out = append(out, namespace)
		}
	}
	return slices.Compact(out)
}
