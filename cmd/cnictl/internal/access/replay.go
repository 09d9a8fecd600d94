package access

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/record"
	"cnictl/tui/query"
)

// Player plays a recording, from --at or its start.
func Player(f *cli.Factory, name string) (*record.Player, error) {
	file, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, noRecording(f, name)
	case err != nil:
		return nil, &cli.Error{Code: cli.ExitFailure, What: name + " could not be read", Why: err.Error()}
	}
	defer file.Close()
	p, err := record.Open(file, record.Options{Now: f.Now})
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitUsage, What: name + " cannot be replayed", Why: err.Error(),
			Do: f.Name + " record FILE makes a new recording"}
	}
	if f.Globals.At != "" {
		from, to := p.Range()
		at, err := momentOf(f.Globals.At, from, to)
		if err == nil && (at.Before(from.Truncate(time.Minute)) || at.After(to.Truncate(time.Second).Add(time.Second))) {
			err = cli.Usage("--at=%s is outside the recording, which covers %s to %s", f.Globals.At, from.UTC().Format(time.RFC3339),
				to.UTC().Format(time.RFC3339))
		}
		if err != nil {
			err.Do = f.Name + " replay " + name + " --info"
			return nil, err
		}
		if at.Before(from) {
			at = from // the minute in which it began
		}
		p.Seek(at)
	}
	return p, nil
}

// noRecording is the error for a recording that does not exist: it suggests similar ones
// in the same directory.
func noRecording(f *cli.Factory, name string) *cli.Error {
	e := &cli.Error{Code: cli.ExitNotFound, What: name + " does not exist"}
	dir := filepath.Dir(name)
	files, err := os.ReadDir(dir)
	if err != nil {
		e.Why = "directory " + dir + " does not exist either"
		if !errors.Is(err, fs.ErrNotExist) {
			e.Why = err.Error()
		}
		return e
	}
	var all, recordings []string
	for _, file := range files {
		if file.IsDir() {
			continue
		}
		all = append(all, file.Name())
		if filepath.Ext(file.Name()) == Extension {
			recordings = append(recordings, file.Name())
		}
	}
	like := query.Near(filepath.Base(name), all)
	switch {
	case len(like) > 0:
		e.Why = "files with a similar name: " + strings.Join(like, ", ")
		e.Do = f.Name + " replay " + filepath.Join(dir, like[0])
	case len(recordings) > 0:
		e.Why = "recordings in " + dir + ": " + strings.Join(recordings[:min(mostNames, len(recordings))], ", ")
		e.Do = f.Name + " replay " + filepath.Join(dir, recordings[0])
	default:
		e.Why = "there are no " + Extension + " files in " + dir
	}
	return e
}

// Extension is the conventional extension of recordings.
const Extension = ".cnirec"

// ReadRecording makes the command read a recording instead of nodes, at the time of --at or
// by default at its end. The command's clock stops at that time too. Call it once, before
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
	f.Recording, f.RecordingFile, f.Now = p, name, func() time.Time { return at }
	return nil
}

// recorded returns the nodes of the recording.
func recorded(f *cli.Factory, asked, scope []string) (NodeSource, error) {
	p := f.Recording
	var targets []fleet.Target
	for _, n := range p.View().Nodes {
		sample := n.NodeIPAM
		targets = append(targets, fleet.Target{
			Name: n.Metadata.Name, Object: n.Object, Via: document.ViaRecord, Sample: &sample,
			Absent: &document.NodeError{Reason: introspect.ReasonNotServed, Message: record.NotIncluded},
		})
	}
	if len(targets) == 0 {
		return NodeSource{},
			&cli.Error{Code: cli.ExitNotFound, What: "no nodes at that time", Why: "the recording has none at " + p.Now().UTC().Format(time.RFC3339),
				Do: f.Name + " replay " + f.RecordingFile + " --info"}
	}
	w, err := named(f, targets, asked, scope)
	w.title = p.Title()
	return w, err
}

// momentOf parses --at: a time; a time of day, which falls on the recording's first day or
// the next; or an offset from its start or, if negative, from its end. Times without a zone
// are UTC.
func momentOf(text string, from, to time.Time) (time.Time, *cli.Error) {
	text = strings.TrimSpace(text)
	if bare, utc := strings.CutSuffix(text, "UTC"); utc { // headings print times like this
		text = strings.TrimSpace(bare)
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05",
		"2006-01-02 15:04", "2006-01-02T15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04", "15:04:05Z", "15:04Z"} {
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
	return time.Time{}, cli.Usage("--at=%s is not a time; use one like 2026-11-21T14:02:11Z, 14:02 (UTC), +5m or -5m", text)
}
