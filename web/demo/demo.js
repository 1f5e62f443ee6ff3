import { Crowd, keepBeating } from './crowd.js'
import { films } from './pictures.js'
import { text, translate } from './text.js'

const status = document.getElementById('status')

// showPlayer lets a lesson's picture play, and its button play and pause it.
const showPlayer = (article, name, title) => {
  const video = article.querySelector('video')
  const button = article.querySelector('.play')
  video.ariaLabel = title
  video.srcObject = films[name]()
  const label = () => {
    article.classList.toggle('playing', !video.paused)
    button.ariaLabel = video.paused ? text.play(title) : text.pause(title)
  }
  video.addEventListener('play', label)
  video.addEventListener('pause', label)
  button.addEventListener('click', () => (video.paused ? video.play() : video.pause()))
  label()
  // Nothing moves by itself for those who have asked for that.
  if (!matchMedia('(prefers-reduced-motion: reduce)').matches) video.play().catch(() => {})
}

// showCrowd lets a lesson's buttons add and remove simulated viewers.
const showCrowd = (article, videoId, title) => {
  const crowd = new Crowd(videoId)
  const group = article.querySelector('.crowd')
  group.ariaLabel = text.crowdOf(title)
  for (const button of group.querySelectorAll('button')) {
    const n = Number(button.dataset.change)
    button.ariaLabel = text.change(n, title)
    button.addEventListener('click', async () => {
      try {
        const changed = await crowd.change(n)
        if (changed) status.textContent = n > 0 ? text.added(changed, title) : text.removed(changed, title)
        else if (status.textContent == text.failed) status.textContent = ''
      } catch {
        status.textContent = text.failed
      }
      group.querySelector('output').textContent = crowd.viewers.length
    })
  }
}

// showRecovery takes a failure back when the numbers are there again.
const showRecovery = (count) => {
  let offline = false
  count.addEventListener('change', () => {
    const state = count.getAttribute('state')
    if (offline && state == 'known' && status.textContent == text.failed) status.textContent = ''
    offline = state == 'offline'
  })
}

const show = (article) => {
  const video = article.querySelector('video')
  const { text: name } = article.querySelector('h2').dataset
  showPlayer(article, name, text[name])
  showCrowd(article, video.dataset.headcount, text[name])
  showRecovery(article.querySelector('viewer-count'))
}

translate()
document.getElementById('snippet').textContent = `<script src="${location.origin}/headcount.js" async></script>
<video data-headcount="10001" src="…" controls></video> <viewer-count video-id="10001"></viewer-count>`
document.querySelectorAll('.lesson').forEach(show)
keepBeating()
