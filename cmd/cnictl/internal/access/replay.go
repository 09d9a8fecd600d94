package access

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/record"
)

// Player plays a recording, from --at or its beginning.
func Player(f *cli.Factory, name string) (*record.Player, error) {
	file, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &cli.Error{Code: cli.ExitNotFound, What: name + " does not exist", Do: f.Name + " record " + name}
	case err != nil:
		return nil, &cli.Error{Code: cli.ExitFailure, What: name + " could not be read", Why: err.Error()}
	}
	defer file.Close()
	p, err := record.Open(file, record.Options{Now: f.Now})
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitUsage, What: name + " cannot be replayed", Why: err.Error(), Do: f.Name + " record FILE makes what can be"}
	}
	if f.Globals.At != "" {
		from, to := p.Range()
		at, err := momentOf(f.Globals.At, from, to)
		if err == nil && (at.Before(from.Truncate(time.Minute)) || at.After(to.Truncate(time.Second).Add(time.Second))) {
			err = cli.Usage("--at=%s is not in the recording, which is from %s to %s", f.Globals.At, from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
		}
		if err != nil {
			err.Do = f.Name + " replay " + name + " --info"
			return nil, err
		}
		if at.Before(from) {
			at = from // the minute that it began in
		}
		p.Seek(at)
	}
	return p, nil
}

// ReadRecording has the command read a recording in place of nodes, as it stands at --at, at
// its end without it. The clock of the command stands there too. It is called once, before
// anything is read.
func ReadRecording(f *cli.Factory, name string) error {
	p, err := Player(f, name)
	if err != nil {
		return err
	}
	p.Play(false)
	if f.Globals.At == "" {
		_, to := p.Range()
		p.Seek(to)
	}
	at := p.Now()
	f.Recording, f.Now = p, func() time.Time { return at }
	return nil
}

// recorded are the nodes of the recording.
func recorded(f *cli.Factory, asked, scope []string) (Way, error) {
	p := f.Recording
	var targets []fleet.Target
	for _, n := range p.View().Nodes {
		sample := n.NodeIPAM
		targets = append(targets, fleet.Target{
			Name: n.Metadata.Name, Object: n.Object, Via: introspect.ViaRecord, Sample: &sample,
			Absent: &introspect.NodeError{Reason: introspect.ReasonNotServed, Message: "it is a recording: there is nobody to ask"},
		})
	}
	if len(targets) == 0 {
		return Way{}, &cli.Error{Code: cli.ExitNotFound, What: "no nodes at that time", Why: "the recording has none at " + p.Now().UTC().Format(time.RFC3339), Do: f.Name + " replay " + f.Globals.Replay + " --info"}
	}
	w, err := named(f, targets, asked, scope)
	w.title = p.Title()
	return w, err
}

// momentOf reads --at: a time, a time of day of the recording's first day or the next,
// a distance after its beginning or before its end.
func momentOf(text string, from, to time.Time) (time.Time, *cli.Error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			day := from.UTC().Truncate(24 * time.Hour)
			moment := day.Add(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second)
			if moment.Before(from.Truncate(time.Minute)) {
				moment = moment.Add(24 * time.Hour)
			}
			return moment, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		if strings.HasPrefix(text, "-") {
			return to.Add(d), nil
		}
		return from.Add(d), nil
	}
	return time.Time{}, cli.Usage("--at=%s is no time: 2026-11-21T14:02:11Z, 14:02, +5m and -5m are accepted", text)
}
