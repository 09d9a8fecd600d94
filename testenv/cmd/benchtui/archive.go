package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// logs are the logs of a collected archive, each with its share of the bytes.
var logs = []struct {
	name  string
	share float64
	line  func(w io.Writer, at time.Time, i int)
}{
	{"./var_log/aws-routed-eni/ipamd.log", 0.6, func(w io.Writer, at time.Time, i int) {
		stamp := at.Format("2006-01-02T15:04:05.000Z")
		switch i % 4 {
		case 0:
			fmt.Fprintf(w, `{"level":"debug","ts":"%s","caller":"ipamd/ipamd.go:697","msg":"IP stats - total IPs: %d, assigned IPs: %d, cooldown IPs: 0"}`+"\n", stamp, 28+i%3, i%28)
		case 1:
			fmt.Fprintf(w, `{"level":"info","ts":"%s","caller":"rpc/rpc.pb.go:1016","msg":"Received AddNetwork for NS /var/run/netns/cni-%08x-5a8e, Sandbox %064x, ifname eth0"}`+"\n", stamp, i, i)
		case 2:
			fmt.Fprintf(w, `{"level":"debug","ts":"%s","caller":"datastore/data_store.go:714","msg":"assignPodIPv4AddressUnsafe: Assign IP 10.0.%d.%d to sandbox aws-cni/%064x/eth0"}`+"\n", stamp, i/256%256, i%256, i)
		default:
			fmt.Fprintf(w, `{"level":"debug","ts":"%s","caller":"ipamd/ipamd.go:1371","msg":"Reconcile and skip primary IP 10.0.%d.%d on ENI eni-%017x"}`+"\n", stamp, i/256%256, i%256, i)
		}
	}},
	{"./var_log/aws-routed-eni/plugin.log", 0.2, func(w io.Writer, at time.Time, i int) {
		fmt.Fprintf(w, `{"level":"info","ts":"%s","caller":"routed-eni-cni-plugin/cni.go:129","msg":"Received add response from ipamd: Success:true IPAddress:10.0.%d.%d DeviceNumber:0"}`+"\n", at.Format("2006-01-02T15:04:05.000Z"), i/256%256, i%256)
	}},
	{"./kubelet/kubelet.log", 0.2, func(w io.Writer, at time.Time, i int) {
		fmt.Fprintf(w, `%s ip-10-0-0-10 kubelet[3412]: I%s    3412 kubelet.go:2421] "SyncLoop (PLEG): event for pod" pod="shop/web-%08x" event={"Type":"ContainerStarted"}`+"\n", at.Format("Jan 02 15:04:05"), at.Format("0102 15:04:05.000000"), i)
	}},
}

// writeArchive writes an archive like eks-log-collector's for a node with long logs, and
// returns its size.
func writeArchive(name string) (size float64, err error) {
	file, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	zipped, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		return 0, err
	}
	archive := tar.NewWriter(zipped)
	end := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, log := range logs {
		most := int64(archiveBytes * log.share)
		if err := archive.WriteHeader(&tar.Header{Name: log.name, Mode: 0o644, Size: most, ModTime: end, Format: tar.FormatPAX}); err != nil {
			return 0, err
		}
		left := &upTo{w: archive, n: most}
		out := bufio.NewWriterSize(left, 1<<20)
		for i := 0; left.n > int64(out.Buffered()); i++ {
			log.line(out, end.Add(-12*time.Hour+time.Duration(i)*10*time.Millisecond), i)
		}
		if err := out.Flush(); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return float64(info.Size()), nil
}

// upTo writes at most n bytes and drops the rest: a log may end in the middle of a line.
type upTo struct {
	w io.Writer
	n int64
}

func (r *upTo) Write(p []byte) (int, error) {
	n, err := r.w.Write(p[:min(int64(len(p)), r.n)])
	if r.n -= int64(n); err != nil {
		return n, err
	}
	return len(p), nil
}
