package ipamd

import (
	"context"
	"log/slog"
	"time"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/cluster"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/keeper"
)

// Times of requesting a trunk: the CNINode may be created after the node, by a controller that
// may be down.
const (
	trunkAskFirst = time.Second
	trunkAskMost  = 30 * time.Second
	// trunkAskEvery is how often an accepted request is checked again.
	trunkAskEvery = 5 * time.Minute
)

func (a *kubernetes) cniNodeChanged(ctx context.Context, n cluster.CNINode, there bool) {
	if there && n.Trunk != "" {
		_ = a.owner.post(ctx, keeper.TrunkHinted{Attached: true}) // only fails when ctx ends
	}
	if there && !a.cniNodeThere {
		signal(a.appeared) // a request that failed because it was missing can be retried now
	}
	a.cniNodeThere = there
	signal(a.features)
}

// trunkAsking is the state of the request for the trunk.
type trunkAsking struct {
	failures keeper.BackoffTimer
	// distance spaces the writes: if something else removes the features again, the daemon
	// does not fight it at full speed.
	distance keeper.BackoffTimer
	writes   int // since the features were last left in place
	wrote    time.Time

	asked, full, failing bool
}

// trunkContested is the number of writes after which a conflict with another writer is logged.
const trunkContested = 3

// held reports whether a back-off makes a request now pointless.
func (t *trunkAsking) held(now time.Time) bool {
	return t.failures.Running(now) || t.distance.Running(now)
}

// askForTrunk keeps the request to the VPC resource controller in the CNINode: the controller
// attaches a trunk ENI to nodes that request one (amazon-vpc-resource-controller-k8s: the
// feature SecurityGroupsForPods of the CNINode).
func (a *kubernetes) askForTrunk(ctx context.Context) {
	var t trunkAsking
	for ctx.Err() == nil {
		a.awaitFeatures(ctx, &t, a.askOnce(ctx, &t, time.Now()))
	}
}

// awaitFeatures waits for that long, or until there is a reason to check earlier.
func (a *kubernetes) awaitFeatures(ctx context.Context, t *trunkAsking, wait time.Duration) {
	features := a.features
	if t.held(time.Now()) {
		features = nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-features:
	case <-a.appeared:
		t.failures = keeper.BackoffTimer{}
	case <-timer.C:
	case <-ctx.Done():
	}
}

// askOnce makes sure that the CNINode requests the trunk, if one is wanted, and returns the
// time until the next check.
func (a *kubernetes) askOnce(ctx context.Context, t *trunkAsking, now time.Time) time.Duration {
	want, slot := a.trunkFeatures()
	full := len(want) > 0 && !slot
	if full && !t.full {
		a.log.Warn(textNoTrunkSlot)
	}
	t.full = full
	if len(want) == 0 || full { // not wanted yet: a signal comes when it is
		return trunkAskMost
	}
	if err := a.wantFeatures(ctx, t, now, want); err != nil {
		t.failures.Fail(now, now, "", trunkAskFirst, trunkAskMost, jitter)
		if ctx.Err() == nil {
			a.owner.metrics.PodENIError(metrics.FnTryEnableSecurityGroups)
			if !t.failing {
				a.log.Warn("trunk ENI not requested, will be retried", slog.Any(logline.KeyError, err))
			}
			t.failing = true
		}
		return t.failures.Until.Sub(now)
	}
	t.failures, t.failing = keeper.BackoffTimer{}, false
	if !t.asked {
		t.asked = true
		a.log.Info("trunk ENI requested in the CNINode", slog.Int(logline.KeyCount, len(want)))
		_ = a.owner.post(ctx, keeper.TrunkHinted{}) // only fails when ctx ends
	}
	if t.distance.Running(now) {
		return t.distance.Until.Sub(now)
	}
	return trunkAskEvery
}

// wantFeatures writes the features that the CNINode lacks, unless they were written recently.
func (a *kubernetes) wantFeatures(ctx context.Context, t *trunkAsking, now time.Time, want []cluster.Feature) error {
	n, err := a.CNINode(ctx)
	if err != nil {
		return err
	}
	switch _, lacks := cluster.AddFeature(n.Features, want...); {
	case !lacks:
		if now.Sub(t.wrote) >= trunkAskEvery {
			t.writes, t.distance = 0, keeper.BackoffTimer{}
		}
		return nil
	case t.distance.Running(now):
		return nil
	}
	if err := a.AddFeatures(ctx, want...); err != nil {
		return err
	}
	t.wrote = now
	t.distance.Fail(now, now, "", trunkAskFirst, trunkAskEvery, jitter)
	if t.writes++; t.writes == trunkContested {
		a.log.Warn("features of the CNINode are removed repeatedly: something else writes its list of features, and pods with security groups wait for the trunk ENI",
			slog.Int(logline.KeyCount, t.writes))
	}
	return nil
}

// trunkFeatures are the features that the node wants, all in one patch: if a controller saw
// the request for the trunk before the ENIConfig, it would create it in the wrong subnet.
func (a *kubernetes) trunkFeatures() (want []cluster.Feature, slot bool) {
	type answer struct {
		wanted, slot bool
		eniConfig    string
	}
	got, ok := ask(a.owner, func(k *keeper.Keeper, _ time.Time) answer {
		wanted, slot := k.TrunkWanted()
		return answer{wanted, slot, k.ENIConfigName()}
	})
	if !ok || !got.wanted {
		return nil, false
	}
	if a.config.CustomNetworking {
		switch got.eniConfig {
		case "":
			return nil, false
		case "default": // upstream does not name it in a CNINode either
		default:
			want = append(want, cluster.Feature{Name: cluster.FeatureCustomNetworking, Value: got.eniConfig})
		}
	}
	return append(want, cluster.Feature{Name: cluster.FeatureSecurityGroupsForPods}), got.slot
}
