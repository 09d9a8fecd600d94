package situation

import (
	"time"

	"cnictl/doctor/evidence"
)

// expectLogs sets the logs of a daemon that started without problems.
func (p *population) expectLogs(r *evidence.Reading) {
	span := func(lines ...evidence.Line) evidence.Log {
		if lines == nil {
			lines = []evidence.Line{}
		}
		return evidence.Log{From: p.at.Add(-24 * time.Hour), To: p.at, Lines: lines}
	}
	say := func(after time.Duration, msg string) evidence.Line {
		return evidence.Line{At: p.UpSince.Add(after), Level: "info", Msg: msg}
	}
	where := "unix:/var/run/aws-node/ipamd.sock"
	if p.release.Before(evidence.Version{1, 23}) {
		where = "127.0.0.1:50051"
	}
	r.LogIPAMD = evidence.Read(span(
		say(0, "Starting L-IPAMD "+p.Version+"  ..."),
		say(2*time.Second, "Serving RPC Handler version "+p.Version+" on "+where),
	))
	r.LogPlugin = evidence.Read(span())
	r.LogAgent = evidence.Read(span())
	if p.AgentVersion == "" {
		r.LogAgent = evidence.Lacking[evidence.Log](evidence.MissingAbsent)
	}
	r.LogKubelet = evidence.Read(span())
	containers := map[string]evidence.Log{
		"aws-vpc-cni-init": span(say(-5*time.Second, "CNI init container done")),
		"aws-node": span(
			say(0, "Starting IPAM daemon... "), say(time.Second, "Checking for IPAM connectivity... "),
			say(3*time.Second, "Copying config file... "), say(3*time.Second, "Successfully copied CNI plugin binary and config file."),
		),
	}
	if p.AgentVersion != "" {
		containers["aws-eks-nodeagent"] = span()
	}
	r.LogAWSNode = evidence.Read(containers)
}
