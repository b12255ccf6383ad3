// A page without a server: answers from a worker of this browser. (Not built yet.)

export async function start() {
  throw new Error("this page has no server");
}

export async function ask() {
  throw new Error("this page has no server");
}
