"""One module a page; each has one function `page`. Not named `pages`: Streamlit would run such files on their own."""
