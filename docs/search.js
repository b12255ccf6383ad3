// Search that also works where the site is opened from a disk: the index comes as a script, and no worker is asked.

window.Worker = null;

var farfieldFound = null;

function search(query) {
  return farfieldFound.search(query).map(function (one) {
    var doc = farfieldIndex.docs[Number(one.ref)];
    return { location: doc.location, title: doc.title, summary: doc.text.substring(0, 200) };
  });
}

function loadSearch(name, then) {
  var script = document.createElement("script");
  script.src = joinUrl(base_url, "search/" + name);
  script.onload = then;
  document.head.append(script);
}

var min_search_length = 2;
loadSearch("lunr.js", function () {
  loadSearch("search_index.js", function () {
    farfieldFound = lunr(function () {
      var builder = this;
      builder.ref("number");
      builder.field("title", { boost: 10 });
      builder.field("text");
      farfieldIndex.docs.forEach(function (doc, number) {
        if (!/^(files|changelog)\.html/.test(doc.location)) builder.add({ number: number, title: doc.title, text: doc.text });
      });
    });
    initSearch();
  });
});
