package cluster

// Images of the cluster, and their archives next to the programs (images.yaml, make testimages).
// There is no registry: they are on every node, for use with imagePullPolicy Never.
const (
	pauseImage = "docker.io/cnictl/pause:test"
	ProbeImage = "docker.io/cnictl/podprobe:test" // runs testenv/cmd/podprobe

	pauseArchive = "pause.tar"
	probeArchive = "podprobe.tar"
)
