// The lessons' pictures. Each draws a moment t, in seconds, on a 480 × 270 canvas.
const width = 480
const height = 270
const turn = 2 * Math.PI

const dot = (c, x, y, radius, color) => {
  c.fillStyle = color
  c.beginPath()
  c.arc(x, y, radius, 0, turn)
  c.fill()
}

const waves = (c, t) => {
  for (let i = 0; i < 7; i++) {
    c.strokeStyle = `hsl(${195 + 8 * i} 85% ${50 + 4 * i}% / .85)`
    c.lineWidth = 3
    c.beginPath()
    for (let x = 0; x <= width; x += 6) {
      const y = height / 2 + (18 + 11 * i) * Math.sin(x / (46 + 7 * i) + t * (0.6 + 0.14 * i)) * Math.sin((turn / 2) * (x / width))
      c.lineTo(x, y)
    }
    c.stroke()
  }
}

const orbits = (c, t) => {
  dot(c, width / 2, height / 2, 15, 'hsl(42 95% 62%)')
  for (let i = 1; i <= 5; i++) {
    const [rx, ry, angle] = [40 * i, 21 * i, (t * 2.2) / i + i]
    c.strokeStyle = 'hsl(30 25% 75% / .25)'
    c.lineWidth = 1
    c.beginPath()
    c.ellipse(width / 2, height / 2, rx, ry, 0, 0, turn)
    c.stroke()
    dot(c, width / 2 + rx * Math.cos(angle), height / 2 + ry * Math.sin(angle), 4 + i, `hsl(${10 + 42 * i} 80% 66%)`)
  }
}

const knots = (c, t) => {
  c.lineWidth = 3.5
  for (let i = 0; i < 240; i++) {
    const at = (s) => [width / 2 + 170 * Math.sin(3 * s + t / 3), height / 2 + 105 * Math.sin(4 * s)]
    const s = (i / 240) * turn
    c.strokeStyle = `hsl(${290 + 70 * Math.sin(s + t)} 80% 66%)`
    c.beginPath()
    c.moveTo(...at(s))
    c.lineTo(...at(s + turn / 235))
    c.stroke()
  }
}

const seeds = (c, t) => {
  for (let i = 1; i < 260; i++) {
    const angle = i * (2.39996 + Math.sin(t / 9) / 400)
    const radius = 7.6 * Math.sqrt(i)
    dot(c, width / 2 + radius * Math.cos(angle + t / 6), height / 2 + radius * Math.sin(angle + t / 6), 2 + i / 90, `hsl(${95 + i / 3} 65% 58%)`)
  }
}

// film draws a picture again and again, as a stream that a <video> can play.
const film = (draw, hue) => {
  const canvas = Object.assign(document.createElement('canvas'), { width, height })
  const c = canvas.getContext('2d')
  const frame = (ms) => {
    c.fillStyle = `hsl(${hue} 45% 9%)`
    c.fillRect(0, 0, width, height)
    draw(c, ms / 1000 + 20)
    requestAnimationFrame(frame)
  }
  frame(0)
  return canvas.captureStream(30)
}

export const films = {
  waves: () => film(waves, 215),
  orbits: () => film(orbits, 250),
  knots: () => film(knots, 285),
  seeds: () => film(seeds, 150),
}
