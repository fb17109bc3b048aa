// Lessons: knobs, what to look at, a question, and the answer, which is folded away.

const { element } = globalThis.aqmlab;
// A file of words per language; add a language by adding its file and its line here.
const LANGUAGES = { en: new URL("./lessons/en.json", import.meta.url) };

export async function loadLessons() {
  const wanted = navigator.languages.map((language) => language.slice(0, 2));
  const language = wanted.find((name) => name in LANGUAGES) ?? "en";
  const answer = await fetch(LANGUAGES[language]);
  if (!answer.ok) throw new Error(`the lessons could not be loaded: ${answer.status}`);
  return { language, ...(await answer.json()) };
}

// Shows a lesson; `chosen` is called with the name of the next one.
export function showLesson(root, { language, words, lessons }, name, chosen) {
  const at = lessons.findIndex((lesson) => lesson.name === name);
  root.hidden = at < 0;
  if (at < 0) return root.replaceChildren();
  const { title, look, question, answer } = lessons[at];
  const paragraphs = (texts) => texts.map((text) => element("p", {}, text));
  const next = element("button", { type: "button", id: "next-lesson" }, at + 1 < lessons.length ? words.next : words.end);
  next.addEventListener("click", () => chosen(lessons[at + 1]?.name ?? ""));
  root.lang = language;
  root.replaceChildren(
    element("h2", {}, `${at + 1}. ${title}`),
    ...paragraphs(look),
    element("p", { class: "question" }, question),
    element("details", {}, element("summary", {}, words.answer), ...paragraphs(answer)),
    next,
  );
}
