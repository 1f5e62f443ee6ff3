// What is kept beyond the page: a random id, and notes that a viewer's tabs leave each other. Where storage is blocked
// or full, all is kept for as long as the page lives.
let store
try {
  store = localStorage
} catch {}
store ??= {}

export const notes = () => Object.entries(store)

export const forget = (name) => delete store[name]

export const save = (name, value) => {
  try {
    store[name] = value
  } catch {}
  return value
}

// random is 128 random bits as text.
export const random = () =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (bits) => bits.toString(36)).join('-')

let ours

// anonymousId is the same for all visits of this browser to this site, and says nothing about who it is.
export const anonymousId = () => store.headcount || (ours ||= save('headcount', random()))

// saveForReload keeps names for this page when it is reloaded, in this tab.
export const saveForReload = (names) => {
  try {
    sessionStorage.headcount = JSON.stringify(names)
  } catch {}
}

// savedForReload takes them. Any other page finds none.
export const savedForReload = () => {
  try {
    const names = JSON.parse(sessionStorage.headcount)
    delete sessionStorage.headcount
    if (performance.getEntriesByType('navigation')[0].type == 'reload') return [].concat(names)
  } catch {}
  return []
}
