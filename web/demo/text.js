const en = {
  added: (n, lesson) => `${n} simulated ${n == 1 ? 'viewer watches' : 'viewers watch'} “${lesson}” now. The number follows with the next pass.`,
  removed: (n, lesson) => `${n} simulated ${n == 1 ? 'viewer has' : 'viewers have'} left “${lesson}”. The number follows with the next pass.`,
  failed: 'The server did not take that. Try again in a moment.',
  watching: 'watching now',
  crowd: 'Simulated viewers',
  crowdOf: (lesson) => `Simulated viewers of ${lesson}`,
  change: (n, lesson) => (n > 0 ? `Add ${n} to ${lesson}` : `Remove ${-n} from ${lesson}`),
  play: (lesson) => `Play ${lesson}`,
  pause: (lesson) => `Pause ${lesson}`,
  waves: 'Waves',
  orbits: 'Orbits',
  knots: 'Knots',
  seeds: 'Seeds',
}

const zh = {
  title: 'Headcount：此刻有多少人在看',
  skip: '跳到课程',
  heading: '曲线四课',
  lead: '每个数字表示此刻有多少人在看这一课，其中也有您。',
  lessons: '课程',
  try: '试一试',
  try1: '添加观众。每一位都是普通的播放器，只使用公开的接口。',
  try2: '暂停一课。窗口过去之前您仍计算在内；在 standalone 程序里是一分钟。',
  try3: '在第二个标签页打开本页。您仍只算一次，关闭其中一个也不会移除您。',
  code: '放到自己的页面上',
  codeLead: '两行 HTML，就能统计一个视频的观众并显示人数：',
  added: (n, lesson) => `${n} 位模拟观众开始看“${lesson}”。数字在下一轮统计后更新。`,
  removed: (n, lesson) => `${n} 位模拟观众离开了“${lesson}”。数字在下一轮统计后更新。`,
  failed: '服务器没有接受，请稍后再试。',
  watching: '人正在看',
  crowd: '模拟观众',
  crowdOf: (lesson) => `“${lesson}”的模拟观众`,
  change: (n, lesson) => (n > 0 ? `给“${lesson}”添加 ${n} 位` : `从“${lesson}”移除 ${-n} 位`),
  play: (lesson) => `播放“${lesson}”`,
  pause: (lesson) => `暂停“${lesson}”`,
  waves: '波',
  orbits: '轨道',
  knots: '结',
  seeds: '种子',
}

const chinese = /^zh/i.test(navigator.language)

export const text = chinese ? zh : en

// translate replaces the page's English by the browser's language, where that is one we know.
export const translate = () => {
  if (!chinese) return
  document.documentElement.lang = 'zh-CN'
  for (const element of document.querySelectorAll('[data-text]')) element.textContent = text[element.dataset.text]
  for (const element of document.querySelectorAll('[data-label]')) element.ariaLabel = text[element.dataset.label]
}
