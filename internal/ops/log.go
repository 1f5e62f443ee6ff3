package ops

import (
	"fmt"
	"io"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Formats of a log.
const (
	JSON    = "json"    // one object a line, for machines
	Console = "console" // one line for a person
)

// CountErrors returns a writer that writes to w, for a log, and counts what could
// not be written in headcount_log_write_errors_total: on a full disk a log cannot
// say itself that it is.
func CountErrors(w io.Writer, reg prometheus.Registerer) io.Writer {
	return &countingWriter{w, promauto.With(reg).NewCounter(prometheus.CounterOpts{
		Name: "headcount_log_write_errors_total",
		Help: "Lines of the log that could not be written.",
	})}
}

type countingWriter struct {
	io.Writer
	errors prometheus.Counter
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		w.errors.Inc()
	}
	return n, err
}

// NewLogger returns a logger that writes to w, and its level, which may be
// changed while the program runs. level is debug, info, warn or error.
func NewLogger(w io.Writer, level, format string) (*zap.Logger, zap.AtomicLevel, error) {
	at, err := zap.ParseAtomicLevel(level)
	if err != nil {
		return nil, at, fmt.Errorf("log.level: %w", err)
	}
	return zap.New(zapcore.NewCore(encoder(format), zapcore.Lock(zapcore.AddSync(w)), at)), at, nil
}

func encoder(format string) zapcore.Encoder {
	c := zap.NewProductionEncoderConfig()
	c.TimeKey = "time"
	c.EncodeTime = zapcore.RFC3339TimeEncoder
	c.EncodeDuration = zapcore.StringDurationEncoder
	if format == Console {
		c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05")
		c.EncodeLevel = zapcore.CapitalLevelEncoder
		return zapcore.NewConsoleEncoder(c)
	}
	return zapcore.NewJSONEncoder(c)
}
