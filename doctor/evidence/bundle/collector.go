package bundle

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/lazy"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// Reasons why a source of an archive is missing.
const (
	missingFile = evidence.MissingNotAsked // the script makes every file, unless its release differs
	missingText = "empty in the bundle"
)

// Limits of what is kept of an eks-log-collector archive.
const (
	maxFile = 16 << 20
	maxKept = 128 << 20
	maxLogs = 24
)

// folders are the top-level folders of such an archive.
var folders = []string{"ipamd", "networking", "cni", "kubelet", "var_log", "sysctls", "system"}

// kept are the files that are read at the end, in full: those of eks-log-collector, then those
// that our own script aws-cni-support.sh adds (docs/support-bundle.md).
var kept = []string{
	"ipamd/enis.json", "ipamd/eni-configs.json", "ipamd/ipamd-env-settings.json", "ipamd/networkutils-env-settings.json", "ipamd/metrics.json",
	"ipamd/ipam.json",
	"networking/iprule.txt", "networking/ip6rule.txt", "networking/iproute.txt", "networking/ip6route.txt", "networking/iptables-save.txt",
	"networking/ip6tables-save.txt", "networking/ifconfig.txt", "networking/ethtool.txt", "sysctls/sysctl_all.txt",
	"system/pkglist.txt", "system/services.txt", "system/instance-id.txt", "system/netstat.txt",
	"cni/cni-configuration-variables-containerd.json",
	"kubelet/config.json", "kubelet/kubelet-config.json",

	"MANIFEST", "ipamd/summary.json", "ipamd/config.json", "ipamd/plan.json", "ipamd/failures.json", "ipamd/events.json", "ipamd/metrics.txt",
	"ipamd/var-run-aws-node.txt",
	"networking/arp-stat.txt", "networking/ndisc-stat.txt",
	"networking/ipaddr.txt", "networking/nft.txt", "networking/iptables-nft-save.txt", "networking/ip6tables-nft-save.txt",
	"networking/iptables-legacy-save.txt", "networking/ip6tables-legacy-save.txt", "system/instance-type.txt", "kubelet/kubelet-version.txt",
}

// sameAs maps files of our script to those of eks-log-collector that they replace.
var sameAs = map[string]string{
	"ipamd/metrics.txt": "ipamd/metrics.json", "networking/ipaddr.txt": "networking/ifconfig.txt", "sysctls/net.txt": "sysctls/sysctl_all.txt",
}

// keptIn are folders whose files are all read at the end.
var keptIn = []string{"cni/", "kubelet/config.json.d/", "networking/systemd-network/"}

// collector extracts what it knows from an archive of eks-log-collector or of our script.
type collector struct {
	at       time.Time // from the name of the archive; zero if it does not say
	instance string
	files    map[string][]byte
	bytes    int
	logs     map[string]*reading.LogReader
	tmps     int // files ipam.json.tmp*
}

// Names of archives: eks_INSTANCE_DATE_HHMM-ZONE_VERSION.tar.gz, and our script's
// aws-cni-support_INSTANCE_TIME.
var (
	archiveName = lazy.Regexp(`eks_(i-[0-9a-z]+)_(\d{4}-\d\d-\d\d_\d{4})-(?:UTC|GMT|Z)_`)
	supportName = lazy.Regexp(`aws-cni-support_(i-[0-9a-z]+)_(\d{8}T\d{6}Z)`)
)

func newCollector(name string) collector {
	c := collector{files: map[string][]byte{}, logs: map[string]*reading.LogReader{}}
	c.named(name)
	return c
}

var instanceID = lazy.Regexp(`^i-[0-9a-z]+$`)

// named takes the time and the instance from the name of an archive, or of its only folder.
func (c *collector) named(name string) {
	for layout, form := range map[string]*regexp.Regexp{"2006-01-02_1504": archiveName(), "20060102T150405Z": supportName()} {
		if m := form.FindStringSubmatch(name); m != nil && c.at.IsZero() {
			c.instance = m[1]
			c.at, _ = time.Parse(layout, m[2])
		}
	}
}

// take processes a file.
func (c *collector) take(a *archive, name string, body io.Reader) error {
	if top, rest, ok := strings.Cut(name, "/"); ok && !slices.Contains(folders, top) {
		c.named(top)
		name = rest
	}
	if top, _, ok := strings.Cut(name, "/"); name != "MANIFEST" && (!ok || !slices.Contains(folders, top)) {
		return nil
	}
	if log := logOf(name); log != "" {
		return c.log(a, log, name, body)
	}
	if path.Dir(name) == "ipamd" && strings.HasPrefix(path.Base(name), "ipam.json.tmp") {
		c.tmps++
		return nil
	}
	name = cmp.Or(sameAs[name], name)
	if !slices.Contains(kept, name) && !isCard(name) &&
		!slices.ContainsFunc(keptIn, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
		return nil
	}
	data, err := readFile(name, body, maxFile)
	if err != nil {
		return err
	}
	if name == "MANIFEST" {
		_, text, _ := strings.Cut(string(data), "\ncollected\t")
		text, _, _ = strings.Cut(text, "\n")
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			c.at = at.UTC()
		}
		return nil
	}
	if c.bytes += len(data); c.bytes > maxKept {
		return refuse("the files that the doctor reads have more than %d bytes", maxKept)
	}
	c.files[name] = data
	return nil
}

// isCard reports whether a file is the checkpoint of a further network card.
func isCard(name string) bool {
	_, ok := checkpoint.CardOfName("ipam.json", path.Base(name))
	return ok && path.Dir(name) == "ipamd"
}

// containerFile matches the name of a container's log in /var/log/containers.
var containerFile = lazy.Regexp(`^(aws-node-[^_/]+)_kube-system_(aws-node|aws-vpc-cni-init|aws-eks-nodeagent)-[0-9a-f]+\.log`)

// podFile matches the path of a container's log in /var/log/pods, with the number of its run.
var podFile = lazy.Regexp(`^kube-system_(aws-node-[^_/]+)_[^/]*/(aws-node|aws-vpc-cni-init|aws-eks-nodeagent)/(\d{1,9})\.log`)

// logOf returns the log that a file is part of: its source, followed, for a container, by its
// pod, its name and the number of the run.
func logOf(name string) string {
	rest, ok := strings.CutPrefix(name, "var_log/")
	switch dir, base := path.Split(rest); {
	case name == "kubelet/kubelet.log":
		return "log.kubelet"
	case !ok:
		return ""
	case dir == "aws-routed-eni/":
		return reading.LogOf(base)
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "containers/"), "pods/")
	if m := containerFile().FindStringSubmatch(rest); m != nil {
		return "log.awsnode " + m[1] + " " + m[2]
	}
	if m := podFile().FindStringSubmatch(rest); m != nil {
		return "log.awsnode " + m[1] + " " + m[2] + " " + m[3]
	}
	return ""
}

// log reads a file of a log, decompressing rotated ones.
func (c *collector) log(a *archive, log, name string, body io.Reader) error {
	l := c.logs[log]
	if l == nil {
		if len(c.logs) == maxLogs {
			a.note("%s was left out: there are more than %d logs", name, maxLogs)
			return nil
		}
		l = reading.NewLogReader(c.at)
		c.logs[log] = l
	}
	in := bufio.NewReaderSize(body, 4<<10)
	start, err := in.Peek(2)
	if err != nil {
		return nil
	}
	var text io.Reader = in
	if isGzip(start) {
		unpacked, err := a.unpack(in)
		if err != nil {
			a.note("%s: %v", name, err)
			return nil
		}
		inner := bufio.NewReaderSize(unpacked, 4<<10)
		if start, _ := inner.Peek(2); isGzip(start) {
			return refuse("%s is gzip-compressed more than once", name)
		}
		text = inner
	}
	err = l.Read(text)
	var refusal *Refusal
	switch {
	case err == nil:
	case errors.As(err, &refusal):
		return refusal
	case isGzip(start):
		a.note("%s was read in part: %v", name, err)
	default:
		return damaged(err)
	}
	return nil
}

// text returns a file that was kept, or why there is none.
func (c *collector) text(name string) (text, missing string) {
	data, ok := c.files[name]
	switch {
	case !ok:
		return "", missingFile
	case len(bytes.TrimSpace(data)) == 0:
		return "", missingText
	}
	return string(data), ""
}

// sourceOf reads a source from a file.
func sourceOf[T any](c *collector, name string, read func(text string) (T, error)) evidence.Source[T] {
	text, missing := c.text(name)
	if missing != "" {
		return evidence.Lacking[T](missing)
	}
	return reading.Source(read(text))
}

// evidence returns the node's evidence from what was taken.
func (c *collector) evidence() *evidence.Evidence {
	r := evidence.Unread(time.Time{}, evidence.MissingMode)
	c.readLogs(r)
	r.At = c.packed(r)
	c.documents(r)
	c.host(r)
	c.kernel(r)
	reading.Relate(r)
	name := cmp.Or(r.Summary.Content.Node, r.ContainerEnv.Content["aws-node"]["MY_NODE_NAME"], c.instanceID(), "node")
	return &evidence.Evidence{
		At: r.At, Mode: evidence.ModeBundle, Scope: evidence.Scope{Node: name}, Nodes: []evidence.Node{{Name: name, First: r}},
	}
}

func (c *collector) instanceID() string {
	text, _ := c.text("system/instance-id.txt")
	if id := strings.TrimSpace(text); instanceID().MatchString(id) {
		return id
	}
	return c.instance
}

// packed returns when the archive was made: its name has the minute in which that began, and the
// newest line is little older than its end.
func (c *collector) packed(r *evidence.Reading) time.Time {
	newest := c.at
	for _, log := range []evidence.Log{r.LogIPAMD.Content, r.LogPlugin.Content, r.LogAgent.Content, r.LogKubelet.Content,
		r.LogAWSNode.Content["aws-node"]} {
		if log.To.After(newest) && (c.at.IsZero() || log.To.Sub(c.at) < 15*time.Minute) {
			newest = log.To
		}
	}
	return newest
}

func (c *collector) readLogs(r *evidence.Reading) {
	for _, l := range []struct {
		id   string
		into *evidence.Source[evidence.Log]
	}{{"log.ipamd", &r.LogIPAMD}, {"log.plugin", &r.LogPlugin}, {"log.np", &r.LogAgent}, {"log.kubelet", &r.LogKubelet}} {
		switch reader, ok := c.logs[l.id]; {
		case !ok:
			*l.into = evidence.Lacking[evidence.Log](missingFile)
		case reader.Empty():
			*l.into = evidence.Lacking[evidence.Log](missingText)
		default:
			*l.into = evidence.Read(reader.Log())
		}
	}
	r.LogAWSNode = evidence.Lacking[map[string]evidence.Log](missingFile)
	// Of several pods of the DaemonSet, the one that wrote last is the node's. The logs of runs
	// are in the order of the runs; one without a number is a copy of the last.
	pods, newest, last := map[string]map[string]evidence.Log{}, "", time.Time{}
	for _, id := range slices.SortedFunc(maps.Keys(c.logs),
		func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }) {
		part := strings.Fields(id)
		if len(part) < 3 || c.logs[id].Empty() {
			continue
		}
		pod, container, log := part[1], part[2], c.logs[id].Log()
		if pods[pod] == nil {
			pods[pod] = map[string]evidence.Log{}
		}
		if before, ok := pods[pod][container]; ok && before.To.Before(log.From) {
			before.Previous, log.Previous = nil, &before
		}
		pods[pod][container] = log
		if newest == "" || log.To.After(last) {
			newest, last = pod, log.To
		}
	}
	if newest != "" {
		r.LogAWSNode = evidence.Read(pods[newest])
	}
}

func (c *collector) documents(r *evidence.Reading) {
	answers := map[string]reading.Answer{}
	for _, at := range introspect.DocumentPaths {
		text, missing := c.text("ipamd/" + path.Base(at) + ".json")
		if missing == missingFile && !slices.Contains(introspect.UpstreamPaths, at) {
			missing = evidence.MissingMode
		}
		answers[at] = reading.Answer{Body: []byte(text), Missing: missing}
	}
	reading.Documents(r, answers)
	r.Metrics = sourceOf(c, "ipamd/metrics.json", func(text string) (evidence.Metrics, error) { return reading.Metrics([]byte(text)) })
	// The script copies this file, so one that is empty here was empty there.
	if data, ok := c.files["ipamd/ipam.json"]; ok {
		const dir = "/var/run/aws-node/"
		out, err := reading.Checkpoint(dir+"ipam.json", data, nil)
		for _, name := range slices.Sorted(maps.Keys(c.files)) {
			if isCard(name) && err == nil {
				var card evidence.Checkpoint
				card, err = reading.Checkpoint(dir+path.Base(name), c.files[name], nil)
				reading.AddCard(&out, card)
			}
		}
		out.Temporary = &c.tmps
		r.Checkpoint = reading.Source(out, err)
	} else {
		r.Checkpoint = evidence.Lacking[evidence.Checkpoint](missingFile)
	}
}

func (c *collector) kernel(r *evidence.Reading) {
	six, _ := c.text("networking/ip6rule.txt")
	r.Rules = sourceOf(c, "networking/iprule.txt", func(text string) ([]evidence.Rule, error) {
		return append(reading.Rules(text, 4), reading.Rules(six, 6)...), nil
	})
	routes6, _ := c.text("networking/ip6route.txt")
	r.Routes = sourceOf(c, "networking/iproute.txt", func(text string) ([]evidence.Route, error) {
		return append(reading.Routes(text, 4), reading.Routes(routes6, 6)...), nil
	})
	r.Links = sourceOf(c, "networking/ifconfig.txt", func(text string) ([]evidence.Link, error) { return reading.Links(text), nil })
	r.IPTables = sourceOf(c, "networking/iptables-save.txt", func(text string) (evidence.IPTables, error) {
		saves := reading.Saves{IPv6: r.ContainerEnv.Content["aws-node"]["ENABLE_IPv6"] == "true"}
		saves.NFT, _ = c.text("networking/iptables-nft-save.txt")
		saves.NFT6, _ = c.text("networking/ip6tables-nft-save.txt")
		saves.Legacy, _ = c.text("networking/iptables-legacy-save.txt")
		saves.Legacy6, _ = c.text("networking/ip6tables-legacy-save.txt")
		if tables, missing := c.text("networking/nft.txt"); missing == "" {
			saves.Tables = &tables
		}
		mode := reading.SaveMode(text)
		four, six := &saves.NFT, &saves.NFT6
		if mode == "legacy" {
			four, six = &saves.Legacy, &saves.Legacy6
		}
		*four = text
		*six, _ = c.text("networking/ip6tables-save.txt")
		return reading.IPTables(mode, saves)
	})
	const sysctls = "sysctls/sysctl_all.txt"
	r.Sysctls = sourceOf(c, sysctls, func(text string) (map[string]string, error) { return reading.Sysctls(text), nil })
	ethtool, _ := c.text("networking/ethtool.txt")
	r.Conntrack = sourceOf(c, sysctls, func(text string) (evidence.Conntrack, error) {
		out := reading.Conntrack(text, ethtool)
		for file, table := range map[string]*evidence.NeighbourTable{"arp-stat": &out.Neighbours.IPv4, "ndisc-stat": &out.Neighbours.IPv6} {
			stat, _ := c.text("networking/" + file + ".txt")
			most := table.Max
			*table = reading.NeighbourTable(stat)
			table.Max = most
		}
		return out, nil
	})
}

func (c *collector) host(r *evidence.Reading) {
	r.ContainerEnv = sourceOf(c, "cni/cni-configuration-variables-containerd.json", func(text string) (map[string]map[string]string, error) {
		return reading.ContainerEnv(strings.NewReader(text))
	})
	cni, networkd, kubelet := evidence.CNI{Conf: []evidence.CNIConf{}}, map[string]string{}, [][]byte{}
	folder := false
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		dir, base := path.Split(name)
		rest, isNetworkd := strings.CutPrefix(name, "networking/systemd-network/")
		switch {
		case dir == "cni/":
			folder = true
			if base == "opt-cni-bin.txt" {
				cni.Bin = reading.ListedPlugins(string(c.files[name]))
			}
			if ext := path.Ext(base); !strings.HasPrefix(base, "cni-configuration-variables") &&
				(ext == ".conf" || ext == ".conflist" || ext == ".json") {
				cni.Conf = append(cni.Conf, reading.CNIConf(base, c.files[name]))
			}
		case isNetworkd:
			networkd["/etc/systemd/network/"+rest] = string(c.files[name])
		case strings.HasPrefix(dir, "kubelet/") && path.Ext(base) != ".txt":
			kubelet = append(kubelet, c.files[name])
		}
	}
	r.CNI, r.Kubelet = evidence.Lacking[evidence.CNI](missingFile), evidence.Lacking[evidence.Kubelet](missingFile)
	if folder {
		r.CNI = evidence.Read(cni)
	}
	version, noVersion := c.text("kubelet/kubelet-version.txt")
	if len(kubelet) > 0 || noVersion == "" {
		most, err := reading.MaxPods(kubelet...)
		r.Kubelet = reading.Source(evidence.Kubelet{Version: strings.TrimSpace(strings.TrimPrefix(version, "Kubernetes ")), MaxPods: most}, err)
	}
	r.RunFiles = sourceOf(c, "ipamd/var-run-aws-node.txt", func(text string) ([]string, error) { return reading.ListedFiles(text), nil })
	r.Listeners = sourceOf(c, "system/netstat.txt", reading.Listeners)
	packages, noPackages := c.text("system/pkglist.txt")
	services, noServices := c.text("system/services.txt")
	r.Packages = evidence.Lacking[evidence.Packages](noPackages)
	if noPackages == "" || noServices == "" {
		r.Packages = evidence.Read(reading.Packages(packages, services, networkd))
	}
	if name, missing := c.text("system/instance-type.txt"); missing == "" {
		r.InstanceType = evidence.Read(reading.InstanceType(strings.TrimSpace(name)))
	}
	for _, l := range r.LogIPAMD.Content.Lines {
		if name, ok := strings.CutPrefix(l.Msg, "Found instance-type: "); ok {
			r.InstanceType = evidence.Read(reading.InstanceType(strings.TrimSpace(name)))
		}
	}
}
