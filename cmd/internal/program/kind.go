package program

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"

	"headcount/internal/keys"
)

// Kind is one of the kinds of videos that are counted side by side, each by itself.
type Kind struct {
	Name    string // "live"; "" where none is listed, which is how nobody hears of kinds
	Keys    keys.Keys
	Log     *zap.Logger           // of several, it says which one it is
	Metrics prometheus.Registerer // likewise

	Gatherer prometheus.Gatherer // gathers the kind's metrics as if it were the only one
}

// labelKind is the label of metrics. Not kind: one of the metrics has that for something else.
const labelKind = "video_kind"

// Kinds are those that are counted, at least one. The first one's keys serve where something is the site's.
func (p *Program) Kinds() []Kind {
	c := p.Config.Config()
	all := make([]Kind, 0, len(c.Prefixes()))
	for _, prefix := range c.Prefixes() {
		k := Kind{Keys: keys.New(prefix), Log: p.Log, Metrics: p.Metrics, Gatherer: p.Metrics}
		if len(c.Kinds) > 0 {
			k.Name = prefix
		}
		if len(c.Kinds) > 1 {
			k.Log = p.Log.With(zap.String("kind", prefix))
			k.Metrics = prometheus.WrapRegistererWith(prometheus.Labels{labelKind: prefix}, p.Metrics)
			k.Gatherer = ofKind{p.Metrics, prefix}
		}
		all = append(all, k)
	}
	return all
}

// ofKind leaves out the metrics of other kinds, and the label from the kind's own.
type ofKind struct {
	prometheus.Gatherer
	name string
}

func (g ofKind) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.Gatherer.Gather()
	for _, family := range families {
		family.Metric = slices.DeleteFunc(family.Metric, func(m *dto.Metric) bool { return !g.take(m) })
	}
	return families, err
}

// take reports whether the metric is of the kind, or of none.
func (g ofKind) take(m *dto.Metric) bool {
	i := slices.IndexFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == labelKind })
	if i < 0 {
		return true
	}
	own := m.Label[i].GetValue() == g.name
	m.Label = slices.Concat(m.Label[:i], m.Label[i+1:]) // the metric itself keeps its labels
	return own
}
